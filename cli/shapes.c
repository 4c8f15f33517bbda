/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of problems to race, from words and from files of one problem a line:
 *
 *     # C = A B, m x n x k; then what is not NN, not one matrix, and a label
 *     4096
 *     4096x4096x512   NT
 *     4096 4096 512   NT
 *     64..1024                            # the cubes of all doublings between
 *     128x128x64      NN *1536 attention
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r\n";

static int add_case(cli_cases *list, cli_case one)
{
    if (list->count == list->room) {
        int room = 2 * list->room + 16;
        cli_case *more = realloc(list->items, (size_t)room * sizeof *more);
        if (!more)
            return cli_fail("there is no memory for %d shapes", room);
        list->items = more;
        list->room = room;
    }
    list->items[list->count++] = one;
    return CLI_OK;
}

/* "64..4096": 64, 128, and so on. */
static int parse_range(const char *text, int64_t *low, int64_t *high)
{
    char copy[CLI_NAME];
    if (strlen(text) >= sizeof copy)
        return 0;
    strcpy(copy, text);
    char *dots = strstr(copy, "..");
    if (!dots)
        return 0;
    *dots = 0;
    return cli_parse_int(copy, 1, INT32_MAX, low) && cli_parse_int(dots + 2, *low, INT32_MAX, high);
}

/* True if the text is a shape or a range; *rc says whether there was memory for it. What `one` has
 * beside a shape holds for all of them. */
static int add_text(cli_cases *list, const char *text, cli_case one, int *rc)
{
    int64_t low, high, batch = one.shape.batch;
    *rc = CLI_OK;
    if (parse_range(text, &low, &high)) {
        for (int64_t size = low; size <= high && *rc == CLI_OK; size *= 2) {
            cli_shape cube = {size, size, size, batch};
            one.shape = cube;
            *rc = add_case(list, one);
        }
        return 1;
    }
    if (!cli_parse_shape(text, &one.shape))
        return 0;
    one.shape.batch = batch;
    *rc = add_case(list, one);
    return 1;
}

static int is_batch(const char *word, int64_t *batch)
{
    return *word == '*' && cli_parse_int(word + 1, 1, INT32_MAX, batch);
}

/* Any word, but for what was meant to be something else: a number, a transpose. */
static int begins_label(const char *word)
{
    const size_t letters = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZnt");
    return !strchr("0123456789*", *word) && (word[letters] || letters > 2);
}

/* The words behind a shape: a transpose, a batch, and the rest is a label. */
static int read_extras(const char *rest, cli_case *one)
{
    const char *label = "";
    int is_good = 1;
    for (const char *word = rest + strspn(rest, blanks); *word;) {
        const size_t length = strcspn(word, blanks);
        char text[CLI_NAME];
        snprintf(text, sizeof text, "%.*s", (int)length, word);
        const int is_trans = cli_is_trans(text);
        if (is_trans)
            strcpy(one->trans, text);
        if (is_trans || is_batch(text, &one->shape.batch))
            is_good &= !*label;
        else if (!*label)
            label = word, is_good &= begins_label(text);
        word += length + strspn(word + length, blanks);
    }
    size_t length = strlen(label);
    while (length > 0 && strchr(blanks, label[length - 1]))
        length--;
    for (length = length < CLI_NAME ? length : CLI_NAME - 1; (label[length] & 0xc0) == 0x80;)
        length--; /* not within a letter */
    snprintf(one->label, CLI_NAME, "%.*s", (int)length, label);
    return is_good;
}

/* The shape that a line begins with, "M N K" as MxNxK, and how long it is; 0: there is none. */
static int read_shape_word(const char *line, char word[CLI_LINE])
{
    char m[24], n[24], k[24];
    int length = 0;
    if (sscanf(line, " %20[0-9] %20[0-9] %20[0-9]%n", m, n, k, &length) == 3 &&
        (!line[length] || strchr(blanks, line[length])))
        snprintf(word, CLI_LINE, "%sx%sx%s", m, n, k);
    else if (sscanf(line, "%1023s%n", word, &length) < 1)
        return 0;
    return length;
}

static int read_file(cli_cases *list, const char *path, cli_case usual)
{
    char *line = NULL, word[CLI_LINE];
    size_t room = 0;
    int number = 0, rc = CLI_OK;
    FILE *file = fopen(path, "r");
    if (!file)
        return cli_fail("--shapes %s cannot be read", path);
    while (rc == CLI_OK && getline(&line, &room, file) >= 0) {
        cli_case one = usual;
        number++;
        line[strcspn(line, "#")] = 0;
        const int length = read_shape_word(line, word);
        if (length == 0)
            continue;
        if (!read_extras(line + length, &one))
            rc =
                cli_fail("%s, line %d: \"%s\" is neither NN, NT, TN, TT, a batch such as *100, nor "
                         "a label behind them",
                         path, number, one.label);
        else if (!add_text(list, word, one, &rc))
            rc = cli_fail("%s, line %d: \"%s\" is no shape such as 512 or 128x256x512", path,
                          number, word);
    }
    if (rc == CLI_OK && ferror(file))
        rc = cli_fail("--shapes %s cannot be read", path);
    free(line);
    fclose(file);
    return rc;
}

int cli_collect_cases(cli_cases *list, const cli_options *o)
{
    static const char *const usual[] = {"64..1024",     "127x129x131",  "1000",
                                        "1024x16x1024", "16x1024x1024", "1024x1024x16",
                                        "1x1024x1024"};
    cli_case one = {.shape = {.batch = o->batch ? o->batch : 1}, .trans = "NN"};
    if (o->trans && !cli_is_trans(o->trans))
        return cli_misuse("--trans takes NN, NT, TN or TT, not \"%s\"", o->trans);
    if (o->trans)
        strcpy(one.trans, o->trans);
    int rc = o->shapes ? read_file(list, o->shapes, one) : CLI_OK;
    for (int i = 0; i < o->word_count && rc == CLI_OK; i++) {
        if (!add_text(list, o->words[i], one, &rc))
            rc = cli_misuse("\"%s\" is no shape: MxNxK, 512 or 64..4096, sizes from 1 to %d",
                            o->words[i], INT32_MAX);
    }
    if (rc == CLI_OK && o->shapes && list->count == 0)
        return cli_fail("%s has no shape in it", o->shapes);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0] && rc == CLI_OK; i++) {
        if (!o->shapes && o->word_count == 0)
            add_text(list, usual[i], one, &rc);
    }
    return rc;
}

/* Problems of all kinds, in each transpose that is given for them. */
static const struct {
    const char *trans, *words[8];
} kinds[] = {
    {"NN",
     {"64..2048", "16x1024x1024", "1024x16x1024", "1024x1024x16", "1x4096x4096", "32x4096x4096"}},
    {"NT", {"256..1024", "32x4096x4096"}},
    {"TN", {"256..1024"}},
};

/* A size that a bucket of the tuning file takes for the same. */
static int64_t about(int64_t size, int is_more)
{
    return size < 8 ? size : is_more ? size + size / 4 : size - size / 5;
}

static int add_neighbours(cli_cases *list)
{
    const int count = list->count;
    cli_case *more = realloc(list->items, 3 * (size_t)count * sizeof *more);
    if (!more)
        return cli_fail("there is no memory for the shapes");
    for (int i = 0; i < 2 * count; i++) {
        cli_case one = more[i % count];
        one.shape.m = about(one.shape.m, i < count);
        one.shape.n = about(one.shape.n, i < count);
        one.shape.k = about(one.shape.k, i < count);
        more[count + i] = one;
    }
    list->items = more;
    list->room = list->count = 3 * count;
    return CLI_OK;
}

int cli_collect_kinds(cli_cases *list, const cli_options *o)
{
    int rc = CLI_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && rc == CLI_OK; i++) {
        cli_options some = *o;
        some.words = (char **)kinds[i].words;
        while (kinds[i].words[some.word_count])
            some.word_count++;
        some.trans = o->trans ? o->trans : kinds[i].trans;
        if (i == 0 || !o->trans)
            rc = cli_collect_cases(list, &some);
    }
    return rc == CLI_OK ? add_neighbours(list) : rc;
}

const char *cli_case_text(const cli_case *one, char *text)
{
    const cli_shape *s = &one->shape;
    char batch[24] = "";
    if (s->batch > 1)
        snprintf(batch, sizeof batch, " *%lld", (long long)s->batch);
    snprintf(text, CLI_NAME, "%lldx%lldx%lld%s%s%s", (long long)s->m, (long long)s->n,
             (long long)s->k, strcmp(one->trans, "NN") == 0 ? "" : " ",
             strcmp(one->trans, "NN") == 0 ? "" : one->trans, batch);
    return text;
}
