/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of any type as doubles, for oracles. It shares nothing with the library's conversions,
 * which work on bits: here a half is a whole number of units of its last digit. */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include <tilegemm.h>

/* Binary digits, largest finite and smallest positive values; of integers, 0, their largest and 1.
 */
typedef struct element_facts {
    int digits;
    double largest, normal, least;
} element_facts;

element_facts element_facts_of(tg_type type);
double element_get(tg_type type, const void *elements, int64_t at);
/* Rounds to nearest, ties to even; integers wrap around. */
void element_put(tg_type type, void *elements, int64_t at, double value);
/* What is there after putting it. */
double element_rounded(tg_type type, double value);

/* The lines of the table of element types in tilegemm.h. */
typedef struct element_line {
    tg_type a, b, c;
} element_line;
enum { ELEMENT_LINES = 10, PLAIN_LINES = 2 }; /* plain: f32 and f64 */
extern const element_line element_lines[ELEMENT_LINES];

#endif
