/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the `tilegemm` program share.
 *
 *   main.c      commands, help            args.c       options, numbers, shapes
 *   text.c      errors, colour, bars      shapes.c     lists of problems, files of them
 *   work.c      a device, its matrices    measure.c    rates, bandwidth, traffic
 *   types.c     elements of any type      race.c       contestants timed in turn
 *   verify.c    what C should be
 *   peer.c      other CPU libraries       peer_gpu.c   cuBLAS, rocBLAS
 *   nvidia.c    clocks, what a unit has   occupancy.c  how many blocks a unit runs at once
 *   svg.c       plots                     counted.c    memory traffic, from ncu
 *   npy_*.c     matrices in files         tuning_file.c   lines of the tuning file
 *   road.c      how a plan goes           show.c       info, tiles
 *   NAME.c      the command of that name, with NAME_*.c
 *
 * A command returns the exit status. cli_fail and cli_misuse print the sentence and return it.
 */
#ifndef TG_CLI_H
#define TG_CLI_H

#include <tilegemm.h>

#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_MISUSED = 2 };

#define CLI_LIST 16
#define CLI_NAME 64
#define CLI_LINE 1024
#define CLI_ROUNDS 1000

typedef struct cli_shape {
    int64_t m, n, k, batch;
} cli_shape;

/* A problem of a race: a shape, which operands are transposed ("NT"), what it is from. */
typedef struct cli_case {
    cli_shape shape;
    char trans[3], label[CLI_NAME];
} cli_case;

typedef struct cli_options {
    const char *backend, *tile, *output, *c0, *shapes, *trans, *plot, *roofline, *once;
    const char *export_to, *import_from;
    const char *peers[CLI_LIST];
    char **words;
    int word_count, peer_count;
    tg_type type;
    int threads, rounds, batch; /* 0: not given */
    int trans_a, trans_b, verify, quiet, json, report, counted, show, help;
    double alpha, beta;     /* beta: NaN if not given */
    uint64_t given;         /* a bit for each option, in the order of args.c */
    char command[CLI_LINE]; /* the line that was typed, cut to fit */
} cli_options;

typedef struct cli_command {
    const char *name, *words, *summary;
    int (*run)(const cli_options *options);
    const char *options[CLI_LIST];
} cli_command;

int cli_info(const cli_options *options);
int cli_tiles(const cli_options *options);
int cli_explain(const cli_options *options);
int cli_ladder(const cli_options *options);
int cli_multiply(const cli_options *options);
int cli_bench(const cli_options *options);
int cli_check(const cli_options *options);
int cli_tune(const cli_options *options);

/* ------------------------------------------------------------------------------------- args.c */
/* CLI_OK, or CLI_MISUSED after saying why. The words are moved to the front of argv. */
int cli_parse(const cli_command *command, int argc, char **argv, cli_options *options);
void cli_print_options(const cli_command *command);
/* CLI_OK, or CLI_MISUSED after saying which option is given that is none of those of the mode. */
int cli_takes_only(const cli_options *options, const char *mode, const char *const *names);
/* False unless all of the text is a number low <= *value <= high in plain digits. */
int cli_parse_int(const char *text, int64_t low, int64_t high, int64_t *value);
/* "512" is a cube, "128x256x512" is m x n x k. The batch is 1. */
int cli_parse_shape(const char *text, cli_shape *shape);
/* The shape that the words of a command spell: none (the default stays), one, or m n k. */
int cli_words_shape(const cli_options *options, cli_shape *shape);

/* "NN", "NT", "TN" or "TT". */
int cli_is_trans(const char *text);

/* ----------------------------------------------------------------------------------- shapes.c */
typedef struct cli_cases {
    cli_case *items;
    int count, room;
} cli_cases;

/* The problems that --shapes and the words name; without any, the usual ones. Free the items. */
int cli_collect_cases(cli_cases *list, const cli_options *options);
/* Problems of all kinds, and two neighbours of each that are in the same bucket of the tuning file.
 */
int cli_collect_kinds(cli_cases *list, const cli_options *options);
/* "1000x1000x64 NT *100": the problem in text[CLI_NAME], without what is usual; and the text. */
const char *cli_case_text(const cli_case *one, char *text);

/* ------------------------------------------------------------------------------------- text.c */
void cli_name_command(const char *name);
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
typedef enum cli_mark { CLI_GOOD, CLI_BAD, CLI_NONE } cli_mark;
/* A mark for a table on stdout, one column wide. */
const char *cli_mark_text(cli_mark mark);
/* A bar of the share (0 .. 1) of width columns, to stdout. */
void cli_print_bar(double share, int width);
/* A bar on stderr, if that is a terminal; with all done, it is gone. */
void cli_show_progress(int64_t done, int64_t all);
/* "1.5 MiB" in text[CLI_NAME], and the text. */
const char *cli_bytes_text(double bytes, char *text);
/* "s", unless it is one. */
const char *cli_s(int64_t count);
/* Bytes of the letter in UTF-8 that the text starts with; 0: none, or what controls a terminal. */
int cli_letter_bytes(const char *text);
/* The text to stdout, with a ? for each byte that is of no such letter. */
void cli_print_text(const char *text);
/* The text as a JSON string, to stdout. */
void cli_print_json_text(const char *text);
/* Rates are told in GFLOP/s or TFLOP/s, whichever suits the peak. */
typedef struct cli_rate {
    const char *name;
    double flops;
} cli_rate;
cli_rate cli_rate_for(double peak);

/* ------------------------------------------------------------------------------------- work.c */
typedef struct cli_machine {
    tg_context *ctx;
    const char *backend;
    tg_limits limits;
    int threads;   /* that calls may use */
    int is_host;   /* the device works in the host's memory */
    int is_forced; /* by --tile */
    tg_tile tile;
} cli_machine;

/* Opens --backend with --threads and --tile. */
int cli_open(cli_machine *machine, const cli_options *options);
void cli_close(cli_machine *machine);
/* Prints the context's last error. */
int cli_fail_call(const cli_machine *machine, const char *what);

/* One problem and its matrices, in the host's memory and in the device's, which may be the same.
 * op(A) and op(B) are stored as trans says, C with a few columns more than n; the items of a batch
 * follow one another. A device that is not the host may hold several copies of all three. */
typedef struct cli_work {
    tg_problem host, device; /* device: the first copy */
    char trans[3];
    size_t a_bytes, b_bytes, c_bytes;
    void *c0; /* what C was at first */
    int64_t copies, turn;
    tg_problem now; /* on the copy whose turn it was */
} cli_work;

typedef enum cli_fill { CLI_RANDOM, CLI_INTEGERS } cli_fill;

/* CLI_INTEGERS are small enough for every sum to be exact, with |alpha| and |beta| up to 2. */
int cli_work_make(cli_machine *machine, cli_work *work, cli_shape shape, tg_type type,
                  const char *trans, cli_fill fill, int c_padding);
/* The same without memory: the problem's data is NULL. False if no memory could have it. */
int cli_work_describe(cli_work *work, cli_shape shape, tg_type type, const char *trans,
                      int c_padding);
int cli_work_reset(cli_machine *machine, cli_work *work); /* C is c0 again, and it is its turn */
int cli_work_fetch(cli_machine *machine, cli_work *work); /* C comes to the host */
/* Makes as many copies on a device as its caches cannot hold, so that each call starts cold. */
int cli_work_spread(cli_machine *machine, cli_work *work);
/* The problem on the copy whose turn it is, until the next call, which takes the next one. */
const tg_problem *cli_work_next(cli_work *work);
void cli_work_free(cli_machine *machine, cli_work *work);

/* Copies the matrices to the device, unless it works in the host's memory, and frees them there. */
int cli_place(cli_machine *machine, const tg_problem *host, tg_problem *device, size_t a_bytes,
              size_t b_bytes, size_t c_bytes);
void cli_unplace(cli_machine *machine, tg_problem *device);

/* Bytes of a rows x cols matrix; 0 if there are more than memory can have. */
size_t cli_matrix_bytes(int64_t rows, int64_t cols, tg_type type);
void *cli_host_memory(size_t bytes);
uint64_t cli_hash(uint64_t x);

/* ---------------------------------------------------------------------------------- measure.c */
double cli_now(void);
double cli_gflops(cli_shape shape, double seconds);
/* What the caches hold that calls may use; and more than that. */
int64_t cli_cache_bytes(const cli_machine *machine);
size_t cli_cold_bytes(const cli_machine *machine);
/* Queues one pass over device memory that reads and writes all of it. */
tg_status cli_pass(cli_machine *machine, void *memory, size_t bytes, tg_type type);
/* Bytes a second that the device streams from memory too large for its caches; 0: not known. */
double cli_bandwidth(cli_machine *machine);
/* Bytes that the plan moves between slow memory and fast memory; without any tiling; and those that
 * any plan has to move, every element once. */
double cli_traffic(const tg_plan *plan, cli_shape shape, tg_type type);
double cli_naive_traffic(cli_shape shape, tg_type type);
double cli_least_traffic(cli_shape shape, tg_type type);
const char *cli_tail_name(tg_tail tail);

/* text.c: the library, the machine and the type, without an end of the line. */
void cli_print_heading(const cli_machine *machine, tg_type type);
/* The start of a JSON object, what was run and on what. */
void cli_print_json_heading(const cli_machine *machine, const cli_options *options, int rounds);

/* ------------------------------------------------------------------------------------ types.c */
/* Rounds to nearest, ties to even; integers wrap around. */
void cli_put(tg_type type, void *elements, int64_t at, double value);
double cli_rounded(tg_type type, double value);
/* Element (row, col) of a host matrix. */
double cli_at(tg_input matrix, int64_t row, int64_t col);
int cli_is_whole(tg_type type);
/* What is multiplied with an A of the type of --type, and what C then is: u8 with i8, to i32. */
tg_type cli_b_type(tg_type type);
tg_type cli_c_type(tg_type type);
/* Unit roundoff, the smallest normal and positive numbers, and the largest. */
typedef struct cli_precision {
    double unit, normal, least, most;
} cli_precision;
cli_precision cli_precision_of(tg_type type);

/* ----------------------------------------------------------------------------------- verify.c */
typedef struct cli_verdict {
    int64_t checked; /* elements */
    int is_exact;    /* all of them, rounded to the type of C */
    double worst;    /* largest |error| / bound; more than 1 is wrong */
    int64_t row, col;
    double got, wanted; /* there */
} cli_verdict;

/* What element (row, col) of C should be; *bound, unless NULL: how far off rounding may take it. */
long double cli_expected(const tg_problem *p, tg_input c0, int64_t row, int64_t col,
                         long double *bound);
/* Recomputes elements of C, all if that takes at most `budget` multiply-adds, else a sample; of a
 * long batch, some items from the first to the last. */
cli_verdict cli_verify(const tg_problem *p, tg_input c0, double budget);
/* Compares C x with A (B x) for a random x of -1 and 1: the largest |error| / bound of a row, or
 * -1 if there is no memory for that. */
double cli_verify_rows(const tg_problem *p, tg_input c0);
/* C as an input. */
tg_input cli_c_of(const tg_problem *p);

/* ------------------------------------------------------------------------------------- peer.c */
/* Any library with cblas_sgemm and cblas_dgemm, or the GPU's maker's own. It stays loaded: its
 * threads may run in it. */
typedef struct cli_peer {
    char name[CLI_NAME];
    void *library, *gemm[2], *batched[2]; /* f32, f64 */
    int is_wide;                          /* sizes are 64-bit */
    const struct cli_dialect *dialect;    /* of a GPU's library; NULL: CBLAS */
    void *handle, *workspace;
} cli_peer;

/* NAME=LIB[:PREFIX] */
int cli_peer_open(cli_peer *peer, const char *text, cli_machine *machine);
void cli_peer_close(cli_peer *peer, cli_machine *machine);
/* CLI_OK, or CLI_FAILED after saying what the library answered. */
int cli_peer_gemm(const cli_peer *peer, const char *trans, const tg_problem *p);
/* peer_gpu.c: the same, once the library is loaded. */
int cli_peer_open_gpu(cli_peer *peer, const char *path, cli_machine *machine);
void cli_peer_close_gpu(cli_peer *peer, cli_machine *machine);
int cli_peer_gemm_gpu(const cli_peer *peer, const char *trans, const tg_problem *p);

/* ------------------------------------------------------------------------------------- race.c */
/* A contestant: a peer, a forced tiling, the chooser's own, or the context as it stands. */
typedef enum cli_mode { CLI_AS_IS, CLI_FORCED, CLI_CHOSEN } cli_mode;

typedef struct cli_runner {
    char name[CLI_NAME];
    const cli_peer *peer; /* NULL: tilegemm */
    cli_mode mode;
    tg_tile tile;  /* to force */
    tg_plan plan;  /* how it ran */
    int64_t calls; /* in one sample */
    int sample_count;
    double seconds;      /* spent so far */
    double median, best; /* seconds a call */
    cli_verdict verdict;
    double samples[CLI_ROUNDS]; /* seconds a call, round by round */
} cli_runner;

/* Sorts the samples. */
double cli_median(double *samples, int count);
/* A runner sits out what is left of the most rounds after the least and after enough seconds. */
typedef struct cli_rounds {
    int least, most;
    double enough;
} cli_rounds;
/* Runs and verifies everyone once, then times all in turn, round by round, with the peak probe in
 * each round. *peak: the median, in FLOP/s, of as many threads as tilegemm's plan has. */
int cli_race(cli_machine *machine, cli_work *work, cli_runner *runners, int count,
             cli_rounds rounds, double *peak);
/* CLI_OK, or CLI_FAILED after saying what is wrong with the runner's result. */
int cli_judge(const cli_runner *runner, const cli_case *one);

/* ----------------------------------------------------------------------------------- nvidia.c */
/* What the driver tells of the device; `is_known` 0: no such driver, and the rest is 0. */
typedef struct cli_clocks {
    int is_known, sm_mhz, memory_mhz, celsius;
    double watts;
    char limited_by[4 * CLI_NAME]; /* "power cap, heat", or "nothing" */
} cli_clocks;

/* What one multiprocessor holds. */
typedef struct cli_unit {
    int is_known, threads, registers, blocks;
    int64_t fast_bytes, fast_taken; /* taken: by the system, of each block's */
} cli_unit;

cli_clocks cli_read_clocks(const cli_machine *machine);
/* Nothing if they are not known. */
void cli_print_clocks(const char *when, const cli_clocks *clocks);
cli_unit cli_read_unit(const cli_machine *machine);

/* -------------------------------------------------------------------------------- occupancy.c */
/* Blocks of a tiling that one unit runs at once: what each resource has room for, and all. */
typedef struct cli_occupancy {
    int is_known, is_measured; /* measured: the driver's figures are there */
    cli_unit unit;
    int warp; /* lanes of a warp */
    tg_usage formula, driver;
    int64_t by_threads, by_registers, by_fast, by_blocks, blocks;
} cli_occupancy;

/* Registers of a lane that hold its part of C at a time: on a GPU, of the whole warp tile. */
int64_t cli_held_registers(tg_tile tile, tg_limits limits, int elem_bytes);
cli_occupancy cli_read_occupancy(cli_machine *machine, const tg_plan *plan, tg_type type);
/* Warps that run at once as a share of those that a unit holds; 0 if not known. */
double cli_occupied(const cli_occupancy *x);
void cli_print_occupancy(const cli_occupancy *x);

/* ------------------------------------------------------------------------------------- svg.c */
typedef struct cli_bar {
    const char *name;
    double value;
    char note[3 * CLI_NAME];
} cli_bar;
typedef struct cli_point {
    char name[2 * CLI_NAME];
    double x, y;
    int series; /* 0: tilegemm, then the peers */
} cli_point;
/* What a plot says beside its marks. */
typedef struct cli_plot {
    const char *path, *title, *subtitle, *unit;
    const char *series[CLI_LIST];
    double peak, peer, bandwidth; /* peer, bandwidth: 0 for none */
} cli_plot;

int cli_plot_bars(const cli_plot *plot, const cli_bar *bars, int count);
/* x in FLOP a byte; y, peak and bandwidth in 1e9 a second. */
int cli_plot_roofline(const cli_plot *plot, const cli_point *points, int count);

/* --------------------------------------------------------------------------------- counted.c */
/* *bytes := what one call of `rung` reads and writes in the device's memory, counted by ncu.
 * CLI_FAILED after saying why not. */
int cli_count_traffic(const cli_options *options, cli_shape shape, const char *rung, double *bytes);

/* --------------------------------------------------------------------------------- npy_read.c */
/* A matrix in a mapped .npy file. */
typedef struct cli_npy {
    const char *path;
    tg_input view;
    int64_t rows, cols;
    void *map, *copy; /* copy: the elements, where the file does not align them */
    size_t map_bytes;
} cli_npy;

int cli_npy_open(cli_npy *file, const char *path);
void cli_npy_close(cli_npy *file);

/* -------------------------------------------------------------------------------- npy_write.c */
/* A new .npy file, in C order and in a temporary file until it is kept. */
typedef struct cli_npy_out {
    const char *path;
    void *map, *data;
    size_t map_bytes;
} cli_npy_out;

int cli_npy_create(cli_npy_out *file, const char *path, int64_t rows, int64_t cols, tg_type type);
int cli_npy_keep(cli_npy_out *file);
void cli_npy_discard(cli_npy_out *file);

/* One file at a time can have a temporary one in its folder, which takes its place once it is kept,
 * and is removed if it is not, also by a signal. CLI_OK if one could be made now, or CLI_FAILED
 * after saying why not. */
int cli_temporary_try(const char *path);
/* One of text. *_open: NULL after saying why; *_close: it is kept if all of it was written. */
FILE *cli_temporary_open(const char *path);
int cli_temporary_close(FILE *file, const char *path);

/* ---------------------------------------------------------------------------- tuning_file.c */
/* The lines of a tuning file, "KEY = VALUE" and others. */
typedef struct cli_lines {
    char **items;
    int count;
} cli_lines;

/* The path of the user's own; CLI_FAILED after saying that there is none. */
int cli_tuning_path(char *path, size_t size);
/* CLI_OK if it could be written now, and nothing is left of that; CLI_FAILED after saying why not.
 */
int cli_tuning_try(const char *path);
/* Makes the folders that are missing; others who change the file wait until the descriptor is
 * closed. */
int cli_tuning_lock(const char *path);
/* A file that is not there has no lines. Free the lines. */
int cli_lines_read(cli_lines *lines, const char *path);
/* The line takes the place of the one with its key, or the last. */
int cli_lines_put(cli_lines *lines, const char *line);
/* Takes out the line with the key that this line has. */
void cli_lines_drop(cli_lines *lines, const char *line);
/* Makes the file anew. */
int cli_lines_write(const cli_lines *lines, const char *path);
void cli_lines_free(cli_lines *lines);
int cli_tuning_show(const char *path);
int cli_tuning_export(const char *path, const char *to);
int cli_tuning_import(const char *path, const char *from);

#endif
