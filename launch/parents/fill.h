/* Placeholders in the arguments of a program that runs one simulation. */
#ifndef MPIDATA_FILL_H
#define MPIDATA_FILL_H

#include <stdio.h>

/* Write a value in a printf format for one number, for example 04d or .6e, or unchanged if the format is empty. Returns whether
 * it succeeded. */
int write_value(FILE *out, const char *value, const char *format);

/* The text, with {name} and {name:format} replaced by the value of name=value, and doubled braces made single; to be freed.
 * NULL: *unknown, to be freed, is a name without a value, or NULL if memory is exhausted. */
char *fill(const char *text, char **assignments, char **unknown);

/* Replace %0A and the like by their bytes, in place; returns the text. mpidata/config/case/files.py writes paths in this
 * form. */
char *unescape(char *text);

#endif
