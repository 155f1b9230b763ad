/* The processes that this one has started, with those that these have started. */
#ifndef MPIDATA_FAMILY_H
#define MPIDATA_FAMILY_H

/* Orphans among them come to this process, not to init, so that they are found. */
void adopt_orphans(void);

/* Kill all of them; returns how many there were, zombies too. */
int kill_family(void);

#endif
