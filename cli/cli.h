/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the `tilegemm` program share.
 *
 *   main.c      commands, help            args.c     options, numbers, shapes
 *   text.c      errors, colour, bars      work.c     a device, matrices on it, time, bandwidth
 *   verify.c    what C should be          race.c     contestants timed in turn, peers among them
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
#define CLI_ROUNDS 1000

typedef struct cli_shape {
    int64_t m, n, k;
} cli_shape;

typedef struct cli_options {
    const char *backend, *tile, *output, *c0, *shapes, *trans;
    const char *peers[CLI_LIST];
    char **words;
    int word_count, peer_count;
    tg_type type;
    int threads, rounds; /* 0: not given */
    int trans_a, trans_b, verify, quiet, json, report, help;
    double alpha, beta; /* beta: NaN if not given */
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

/* ------------------------------------------------------------------------------------- args.c */
/* CLI_OK, or CLI_MISUSED after saying why. The words are moved to the front of argv. */
int cli_parse(const cli_command *command, int argc, char **argv, cli_options *options);
void cli_print_options(const cli_command *command);
/* False unless all of the text is a number low <= *value <= high in plain digits. */
int cli_parse_int(const char *text, int64_t low, int64_t high, int64_t *value);
/* "512" is a cube, "128x256x512" is m x n x k. */
int cli_parse_shape(const char *text, cli_shape *shape);
/* The shape that the words of a command spell: none (the default stays), one, or m n k. */
int cli_words_shape(const cli_options *options, cli_shape *shape);

/* ------------------------------------------------------------------------------------- text.c */
void cli_name_command(const char *name);
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
typedef enum cli_mark { CLI_GOOD, CLI_BAD, CLI_NONE } cli_mark;
/* A mark for a table on stdout, one column wide. */
const char *cli_mark_text(cli_mark mark);
/* A bar of the share (0 .. 1) of width columns, to stdout. */
void cli_print_bar(double share, int width);
/* "1.5 MiB" in text[CLI_NAME], and the text. */
const char *cli_bytes_text(double bytes, char *text);

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
 * op(A) and op(B) are stored as trans says, C with a few columns more than n. */
typedef struct cli_work {
    tg_problem host, device;
    char trans[3];
    size_t a_bytes, b_bytes, c_bytes;
    void *c0; /* what C was at first */
} cli_work;

typedef enum cli_fill { CLI_RANDOM, CLI_INTEGERS } cli_fill;

/* CLI_INTEGERS are small enough for every sum to be exact, with |alpha| and |beta| up to 2. */
int cli_work_make(cli_machine *machine, cli_work *work, cli_shape shape, tg_type type,
                  const char *trans, cli_fill fill, int c_padding);
int cli_work_reset(cli_machine *machine, cli_work *work); /* C is c0 again */
int cli_work_fetch(cli_machine *machine, cli_work *work); /* C comes to the host */
void cli_work_free(cli_machine *machine, cli_work *work);

/* Copies the matrices to the device, unless it works in the host's memory, and frees them there. */
int cli_place(cli_machine *machine, const tg_problem *host, tg_problem *device, size_t a_bytes,
              size_t b_bytes, size_t c_bytes);
void cli_unplace(cli_machine *machine, tg_problem *device);

/* Bytes of a rows x cols matrix; 0 if there are more than memory can have. */
size_t cli_matrix_bytes(int64_t rows, int64_t cols, tg_type type);
uint64_t cli_hash(uint64_t x);
double cli_now(void);
double cli_gflops(cli_shape shape, double seconds);
/* Bytes a second that the device streams from memory too large for its caches; 0: not known. */
double cli_bandwidth(cli_machine *machine);
/* Bytes that the tiling moves between slow memory and fast memory, and without any tiling. */
double cli_traffic(tg_tile tile, cli_shape shape, tg_type type);
double cli_naive_traffic(cli_shape shape, tg_type type);

/* ----------------------------------------------------------------------------------- verify.c */
typedef struct cli_verdict {
    int64_t checked; /* elements */
    int is_exact;    /* all of them */
    double worst;    /* largest |error| / bound; more than 1 is wrong */
    int64_t row, col;
    double got, wanted; /* there */
} cli_verdict;

/* Element (row, col) of a host matrix. */
double cli_at(tg_input matrix, int64_t row, int64_t col);
/* What element (row, col) of C should be; *bound, unless NULL: how far off rounding may take it. */
long double cli_expected(const tg_problem *p, tg_input c0, int64_t row, int64_t col,
                         long double *bound);
/* Recomputes elements of C, all if that takes at most `budget` multiply-adds, else a sample. */
cli_verdict cli_verify(const tg_problem *p, tg_input c0, double budget);
/* Compares C x with A (B x) for a random x of -1 and 1: the largest |error| / bound of a row, or
 * -1 if there is no memory for that. */
double cli_verify_rows(const tg_problem *p, tg_input c0);
/* C as an input. */
tg_input cli_c_of(const tg_problem *p);

/* ------------------------------------------------------------------------------------- peer.c */
/* Any library with cblas_sgemm and cblas_dgemm. It stays loaded: its threads may run in it. */
typedef struct cli_peer {
    char name[CLI_NAME];
    void *library, *sgemm, *dgemm;
    int is_wide; /* sizes are 64-bit */
} cli_peer;

int cli_peer_open(cli_peer *peer, const char *text, int threads);
void cli_peer_gemm(const cli_peer *peer, const cli_work *work);

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
    double samples[CLI_ROUNDS];
} cli_runner;

/* Runs and verifies everyone once, then times all in turn, round by round, with the peak probe in
 * each round. *peak: the median, in FLOP/s. A runner sits the rest out after `enough` seconds. */
int cli_race(cli_machine *machine, cli_work *work, cli_runner *runners, int count, int rounds,
             double enough, double *peak);

/* -------------------------------------------------------------------------------------- npy.c */
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

/* A new .npy file, in C order and in a temporary file until it is kept. */
typedef struct cli_npy_out {
    const char *path;
    void *map, *data;
    size_t map_bytes;
} cli_npy_out;

int cli_npy_create(cli_npy_out *file, const char *path, int64_t rows, int64_t cols, tg_type type);
int cli_npy_keep(cli_npy_out *file);
void cli_npy_discard(cli_npy_out *file);

#endif
