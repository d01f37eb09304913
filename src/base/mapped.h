/* Files that are read through memory. A page that the disk cannot give, or that has gone because
 * the file was shortened, comes as SIGBUS to whoever touches it: nobody can return an error from
 * there, so the process says which file it was and ends with the status of an I/O error. A damaged
 * page that leads its reader astray within the map or past its end does so, too; elsewhere, where
 * it may be a bug as well, the process ends by SIGSEGV, with a word about the file. */
#ifndef BASE_MAPPED_H
#define BASE_MAPPED_H

#include "base/base.h"

enum { MAPPED_EXIT_STATUS = 74 /* EX_IOERR of <sysexits.h> */ };

/* From now on a bus error is taken for one of this file (of the first, when there are several: they
 * do not say where they lie). `path` must live until mapped_forget. */
void mapped_watch(const char *path);
/* Where its map lies: a fault there, or just behind it, is one of damage, and ends the process with
 * a sentence and that status, too. */
void mapped_lies(const char *path, uintptr_t begin, size_t bytes);
/* The code of the library that reads the pages: a fault of it is the same, wherever it reads. */
void mapped_reader(uintptr_t begin, uintptr_t end);
void mapped_forget(const char *path);

/* Runs `touch`, which reads a map that may lack pages; false if it met one, and was left there: so
 * it must hold nothing. */
bool mapped_try(void (*touch)(void *context), void *context) MUST_CHECK;

#endif
