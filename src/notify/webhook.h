/* Webhooks: addresses to which messages are posted, mailed or published. Each is a line of words:
 *
 *     https://chat.example.org/hooks/7f3c tenant=shop environment=live kind=new
 *     mailto:team@example.org kind=day
 *     amqp://granary:secret@rabbit.example/shop exchange=faults key=granary
 *
 * Pure. */
#ifndef NOTIFY_WEBHOOK_H
#define NOTIFY_WEBHOOK_H

#include "fault/message.h"
#include "model/series.h"
#include "wire/amqp_address.h"

enum { WEBHOOK_NAME_BYTES = 16, WEBHOOK_LINE_MAX_BYTES = 2000 };

enum webhook_way {
	WEBHOOK_POSTS,     /* by HTTP to `url` */
	WEBHOOK_MAILS,     /* to `url`, who receives it */
	WEBHOOK_PUBLISHES, /* to `broker` by AMQP */
};

struct webhook {
	/* Small hexadecimal digits, of the whole line: another line is another webhook. */
	char name[WEBHOOK_NAME_BYTES + 1];
	enum webhook_way way;
	char *url;   /* its own, as are the other texts; NULL: it publishes */
	char *shown; /* what of it may be shown: the path may be a secret */
	struct amqp_address broker;
	struct arena broker_texts;
	char *exchange, *key;               /* of the broker; NULL: empty */
	char *tenant, *environment, *level; /* NULL: any */
	int kind;                           /* enum fault_message_kind; -1: any */
};

/* ERR_INVALID, with a sentence that has nothing of the address; then there is nothing to release.
 */
int webhook_parse(struct slice line, struct webhook *webhook, struct errbuf *e) MUST_CHECK;
void webhook_release(struct webhook *webhook);

/* One address, `name@host`, which stands for itself in a head of mail. */
bool webhook_is_mailbox(struct slice text);

/* Sums of what was held back fit wherever no kind is asked for. */
bool webhook_wants(const struct webhook *webhook, const struct fault_message *message);

#endif
