/* Text that is read alike in every locale, which is the program's: with a decimal comma strtod reads half of 60.5, and in Turkish
 * i is not the small letter of I. */
#ifndef MPIDATA_TEXT_H
#define MPIDATA_TEXT_H

/* A finite decimal number: [+-]digits[.digits][e[+-]digits], after blanks or none, and nothing behind it. Rounded to the nearest
 * double, so that 17 digits give back any double, in any rounding mode: all arithmetic is that of integers. Returns whether the
 * text is one; else *value stays. */
int mpidata_number(const char *text, double *value);

static inline char mpidata_upper(char letter) { return letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter; }

#endif
