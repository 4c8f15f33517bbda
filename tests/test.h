/* SPDX-License-Identifier: Apache-2.0
 *
 * What every test program shares: counted checks that print where and what, and the last line
 * `N passed, N failed`. Checks may be made from several threads. They print to a copy of stdout,
 * so that a program can redirect stdout itself and see whether the library wrote to it. */
#ifndef TEST_H
#define TEST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Counts, prints a failure as "file:line: message", and returns ok. */
int test_note(int ok, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints to the copy of stdout. */
void test_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Does the text hold every one of the parts, which are separated by '|'? */
int test_holds(const char *text, const char *parts);
/* False once TG_TEST_SECONDS, if set, have passed since it was asked first; totals then say how
 * often it was asked in vain. */
int test_has_time(void);
/* Where time may end, pairs of row and type are gone through by leaps of a prime: none comes twice
 * before all have, and all sorts have had some. */
enum { TEST_LEAP = 7919 };
/* Prints the totals and returns the exit status. */
int test_close(void);

/* The bytes of a tg_plan that mean something: the padding after its last member holds anything. */
#define PLAN_BYTES (offsetof(tg_plan, is_tuned) + sizeof(int))

/* A hash that is good enough to fill matrices with. */
uint64_t test_hash(uint64_t x);

#define CHECK(condition) test_note(!!(condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_SAY(condition, ...) test_note(!!(condition), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_INT(actual, expected) \
    test_int((long long)(actual), (long long)(expected), #actual, __FILE__, __LINE__)
/* The text must hold every part of "part|part". */
#define CHECK_TEXT(text, parts) test_text((text), (parts), __FILE__, __LINE__)

static inline int test_int(long long actual, long long expected, const char *what, const char *file,
                           int line)
{
    return test_note(actual == expected, file, line, "%s is %lld, expected %lld", what, actual,
                     expected);
}

static inline int test_text(const char *text, const char *parts, const char *file, int line)
{
    return test_note(text && test_holds(text, parts), file, line, "\"%s\" does not hold \"%s\"",
                     text ? text : "(null)", parts);
}

#endif
