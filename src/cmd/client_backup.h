/* What the commands of backups share: progress, and reading a backup from where it lies. */
#ifndef CMD_CLIENT_BACKUP_H
#define CMD_CLIENT_BACKUP_H

#include "cmd/client_private.h"
#include "store/backup_file.h"

/* Told to whoever sits at a terminal, twice a second. Zeros at first. */
struct backup_progress {
	int64_t begun_us, told_us;
};
void backup_progress_tell(struct backup_progress *progress, const char *what, uint64_t bytes);
/* What was told is gone from the terminal. */
void backup_progress_end(const struct backup_progress *progress);

/* Reads the backup in `file`, `-` is standard input, with a reader whose `data` and owner are set.
 * A file that cannot be a backup is refused before any of it is handed on. Errors have a sentence
 * that names the file. */
int backup_read_file(const char *file, struct backup_reader *reader, const char *what,
		     struct errbuf *e) MUST_CHECK;
/* One line for people about a backup that is whole. */
void backup_print_facts(FILE *to, const char *file, const struct backup_manifest *manifest);

#endif
