/* Parsing of text independent of the locale, which is the program's: with a decimal comma strtod reads only part of 60.5, and
 * in Turkish i is not the small letter of I. */
#ifndef MPIDATA_TEXT_H
#define MPIDATA_TEXT_H

/* Parse a finite decimal number: [+-]digits[.digits][e[+-]digits], with optional blanks before it and nothing after it. Rounded
 * to the nearest double, so that 17 digits restore any double, in any rounding mode: only integer arithmetic is used. Returns
 * whether the text is such a number; else *value is unchanged. */
int mpidata_number(const char *text, double *value);

static inline char mpidata_upper(char letter) { return letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter; }

#endif
