/* Where a process serves HTTP: the items of the option `listen`, and the certificate of those that
 * speak TLS.
 *
 *     127.0.0.1:8470            on loopback, unencrypted
 *     tls:[::]:8473             by TLS
 *     plain:192.0.2.1:8470      unencrypted, beyond loopback too
 *     unix:/run/granary/http    on a socket of this machine, for its user and group (0660)
 *
 * Nobody else is listened to than may be known: beyond loopback only where there are credentials.
 * Senders of lines show none; they are known by their networks (serve_networks_read).
 *
 * The loop's thread. */
#ifndef CMD_SERVE_ADDRESSES_H
#define CMD_SERVE_ADDRESSES_H

#include "http/http.h"

struct buf;
#include "conf/conf.h"
struct http_server;

enum { SERVE_ADDRESSES_MAX = 8, SERVE_ADDRESSES_TEXT_BYTES = 4096 };
enum { SERVE_URL_BYTES = LOOP_PATH_MAX_BYTES + 8 };

/* The path of the socket in a data directory, for printf. */
#define SERVE_SOCKET_OF_DATA "%s/granary.sock"

struct serve_address {
	struct loop_address address; /* once it is bound with its port */
	const char *path;            /* of a socket of this machine; NULL: it is of the network */
	bool tls;
	bool plain; /* it says that what is sent may be read by others */
};

struct serve_addresses {
	struct serve_address list[SERVE_ADDRESSES_MAX];
	size_t count;
	struct loop_tls tls; /* no context: none of them speaks TLS */
	struct http_outside outside;
	/* The socket in the data directory, for commands of this machine; empty: there is none. */
	char socket[LOOP_PATH_MAX_BYTES];
};

/* `preset`, if it is not NULL, holds where no address is configured. Nothing is opened yet, but the
 * certificate is read. Texts point into `conf`. ERR_INVALID with a sentence that names the option.
 */
int serve_addresses_read(const struct conf *conf, const char *preset,
			 struct serve_addresses *addresses, struct errbuf *e) MUST_CHECK;
/* ERR_INVALID where one is reached from other machines; `why` nobody may be let in from there ends
 * the sentence, which names the option. */
int serve_addresses_check_reach(const struct serve_addresses *addresses, const struct conf *conf,
				const char *why, struct errbuf *e) MUST_CHECK;
/* With a sentence that names the option. Those before the one that fails are open. */
int serve_addresses_listen(struct serve_addresses *addresses, const struct conf *conf,
			   struct http_server *http, struct errbuf *e) MUST_CHECK;
/* The networks of an option; with a sentence that names it, and the item. */
int serve_networks_read(const struct conf *conf, enum conf_id id, struct loop_networks *networks,
			struct errbuf *e) MUST_CHECK;
/* Opens the socket for commands in the data directory; where that cannot be, the log says so. */
void serve_addresses_listen_for_commands(struct serve_addresses *addresses, const char *data,
					 struct http_server *http);
/* `http://127.0.0.1:8470/, unix:/run/granary`, after serve_addresses_listen(). */
void serve_addresses_print(const struct serve_addresses *addresses, struct buf *out);
/* By which address this process reaches itself, as http_client_options have it. False: by none. */
bool serve_addresses_own(const struct serve_addresses *addresses,
			 char url[SERVE_URL_BYTES]) MUST_CHECK;
/* After a reload: connections that come from now on where TLS is spoken get the certificate of
 * `next`. Addresses stay. */
void serve_addresses_renew(const struct serve_addresses *next, struct http_server *http);
void serve_addresses_release(struct serve_addresses *addresses);

#endif
