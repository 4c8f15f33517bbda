/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled as strict C99 and as C++17: the header needs no other, and its initialisers work. */
#include <tilegemm.h>

int main(void)
{
    tg_problem problem = TG_PROBLEM_INIT;
    tg_plan plan = TG_PLAN_INIT;
    return problem.size == sizeof problem && problem.batch == 1 && problem.alpha == 1 &&
                   problem.beta == 0 && problem.compute == TG_STRICT && plan.size == sizeof plan &&
                   plan.row == -1
               ? TG_OK
               : TG_BAD_ARGUMENT;
}
