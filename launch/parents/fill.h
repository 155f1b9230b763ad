/* Placeholders in the arguments of a program that is started for one simulation. */
#ifndef MPIDATA_FILL_H
#define MPIDATA_FILL_H

#include <stdio.h>

/* Write a value in a format of printf for one number, 04d or .6e for instance, or as it is where this is empty. Returns whether
 * it could be. */
int write_value(FILE *out, const char *value, const char *format);

/* The text, with {name} and {name:format} replaced by the value of name=value, and doubled braces made single; to be freed.
 * NULL: *unknown, to be freed, is a name without a value, or NULL where there is no memory. */
char *fill(const char *text, char **assignments, char **unknown);

/* The text, with %0A and the like replaced by the bytes that they stand for, in place; as mpidata/config/case/files.py
 * writes paths. */
char *unescape(char *text);

#endif
