#include "cmd/client_password.h"

#include <errno.h>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"

/* A line of a descriptor, byte by byte, since what stands behind it is another reader's. What has
 * no room is left out, but for one byte. */
static int client_password_read_line(int fd, char text[CLIENT_PASSWORD_BYTES], struct errbuf *e)
{
	size_t len = 0;
	char byte;
	ssize_t got;
	while ((got = read(fd, &byte, 1)) == 1 && byte != '\n') {
		if (!byte)
			return errbuf_set(e, ERR_INVALID, "the password has a zero byte");
		if (len < CLIENT_PASSWORD_BYTES - 1)
			text[len++] = byte;
	}
	text[len] = 0;
	return got < 0 ? errbuf_set(e, -errno, "the password cannot be read: %s", err_text(-errno))
		       : 0;
}

/* Without echo, and without signals, after which the terminal would stay so: what would be one is a
 * control character, which no password has. */
static int client_password_ask(int fd, const char *prompt, char text[CLIENT_PASSWORD_BYTES],
			       struct errbuf *e)
{
	struct termios before, silent;
	if (tcgetattr(fd, &before))
		return errbuf_set(e, -errno, "the terminal: %s", err_text(-errno));
	silent = before;
	silent.c_lflag &= ~(tcflag_t)(ECHO | ISIG);
	if (tcsetattr(fd, TCSAFLUSH, &silent))
		return errbuf_set(e, -errno, "the terminal: %s", err_text(-errno));
	dprintf(fd, "%s", prompt);
	int err = client_password_read_line(fd, text, e);
	tcsetattr(fd, TCSADRAIN, &before);
	dprintf(fd, "\n");
	return err;
}

static int client_password_ask_twice(char text[CLIENT_PASSWORD_BYTES], struct errbuf *e)
{
	char again[CLIENT_PASSWORD_BYTES];
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errbuf_set(e, ERR_INVALID,
				  "there is no terminal on which a password could be typed; "
				  "--password-file names a file whose first line it is, or - for "
				  "standard input");
	int err = client_password_ask(fd, "password: ", text, e);
	err = err ? err : password_check(slice_of(text), e);
	err = err ? err : client_password_ask(fd, "the same once more: ", again, e);
	if (!err && strcmp(text, again) != 0)
		err = errbuf_set(e, ERR_INVALID, "the two passwords differ");
	explicit_bzero(again, sizeof(again));
	close(fd);
	return err;
}

int client_password_read(const char *file, char text[CLIENT_PASSWORD_BYTES], struct errbuf *e)
{
	int err;
	if (!file)
		err = client_password_ask_twice(text, e);
	else if (strcmp(file, "-") == 0)
		err = client_password_read_line(STDIN_FILENO, text, e);
	else
		err = file_read_secret(files_real(), file, text, CLIENT_PASSWORD_BYTES, e);
	return err ? err : password_check(slice_of(text), e);
}
