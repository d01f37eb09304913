#include "notify/post.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "notify/address.h"
#include "notify/publisher.h"

enum {
	POST_TIMEOUT_S = 10,
	POST_CONNECT_S = 5,
	POST_MAIL_S = 60,
	POST_MAIL_ANSWER_S = 30,
	POST_ANSWER_MAX_BYTES = 64 << 10,
	POST_HEADER_MAX_BYTES = 300,
	POST_SIGNED_MAX_BYTES = 1 << 20,
	POST_WORD_BYTES = 45, /* 60 characters of base64 */
};

struct post_sending {
	struct posts *posts;
	CURL *easy;
	struct curl_slist *headers, *receivers;
	curl_mime *mime; /* of a mail; else NULL */
	void *owner;
	char error[CURL_ERROR_SIZE];
	bool refused;    /* it was connected to an internal address */
	size_t answered; /* bytes */
	struct post_sending *following;
};

/* A message to a broker. */
struct post_publishing {
	struct publication publication;
	struct posts *posts;
	void *owner;
	char *id, *body;
	struct post_publishing *following; /* of those that have ended */
};

struct post_broker {
	const struct amqp_address *address;
	struct publisher *publisher;
	struct post_broker *following;
};

struct posts {
	bool internal;
	struct post_sockets *sockets;
	CURLM *multi;
	struct post_sending *list;
	struct job *job;
	struct post_broker *brokers;
	struct post_publishing *published; /* or not */
};

/* ---- Sockets --------------------------------------------------------------------------------- */

void post_sockets_init(struct post_sockets *sockets)
{
	*sockets = (struct post_sockets){.count = 0};
	pthread_mutex_init(&sockets->lock, NULL);
}

void post_sockets_release(struct post_sockets *sockets)
{
	pthread_mutex_destroy(&sockets->lock);
}

void post_sockets_shut(struct post_sockets *sockets)
{
	pthread_mutex_lock(&sockets->lock);
	sockets->shut = true;
	for (size_t i = 0; i < sockets->count; i++)
		shutdown(sockets->list[i], SHUT_RDWR);
	pthread_mutex_unlock(&sockets->lock);
}

/* CURL_SOCKET_BAD: there is none for it. */
static curl_socket_t post_sockets_open(struct post_sockets *sockets,
				       const struct curl_sockaddr *address)
{
	curl_socket_t opened = CURL_SOCKET_BAD;
	pthread_mutex_lock(&sockets->lock);
	if (!sockets->shut && sockets->count < POST_SOCKETS_MAX)
		opened = socket(address->family, address->socktype | SOCK_CLOEXEC,
				address->protocol);
	if (opened != CURL_SOCKET_BAD)
		sockets->list[sockets->count++] = opened;
	pthread_mutex_unlock(&sockets->lock);
	return opened;
}

static int post_sockets_close(void *owner, curl_socket_t closed)
{
	struct post_sockets *sockets = owner;
	pthread_mutex_lock(&sockets->lock);
	for (size_t i = 0; i < sockets->count; i++)
		if (sockets->list[i] == closed)
			sockets->list[i] = sockets->list[--sockets->count];
	int failed = close(closed);
	pthread_mutex_unlock(&sockets->lock);
	return failed;
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct posts *posts_new(struct job *job, struct post_sockets *sockets, bool internal)
{
	struct posts *posts = mem_zalloc(sizeof(*posts));
	posts->sockets = sockets;
	posts->job = job;
	posts->internal = internal;
	posts->multi = curl_multi_init();
	ASSERT(posts->multi);
	return posts;
}

static void post_free(struct post_sending *post)
{
	struct post_sending **place = &post->posts->list;
	while (*place != post)
		place = &(*place)->following;
	*place = post->following;
	curl_multi_remove_handle(post->posts->multi, post->easy);
	curl_easy_cleanup(post->easy);
	curl_mime_free(post->mime);
	curl_slist_free_all(post->headers);
	curl_slist_free_all(post->receivers);
	mem_free(post);
}

/* The first of those that have ended. */
static void post_free_published(struct posts *posts)
{
	struct post_publishing *publishing = posts->published;
	posts->published = publishing->following;
	mem_free(publishing->id);
	mem_free(publishing->body);
	mem_free(publishing);
}

static void posts_free_brokers(struct posts *posts)
{
	for (struct post_broker *broker = posts->brokers; broker; broker = broker->following)
		publisher_stop(broker->publisher);
	while (posts->brokers) {
		struct post_broker *broker = posts->brokers;
		while (!publisher_is_over(broker->publisher))
			task_queue_wait(job_queue(posts->job));
		publisher_free(broker->publisher);
		posts->brokers = broker->following;
		mem_free(broker);
	}
	while (posts->published)
		post_free_published(posts);
}

void posts_free(struct posts *posts)
{
	posts_free_brokers(posts);
	while (posts->list)
		post_free(posts->list);
	curl_multi_cleanup(posts->multi);
	mem_free(posts);
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

static curl_socket_t post_open(void *owner, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct post_sending *post = owner;
	(void)purpose;
	if (post->mime)
		return post_sockets_open(post->posts->sockets, address);
	post->refused =
		!post->posts->internal && (address_is_internal(&address->addr, address->addrlen) ||
					   address_is_own(&address->addr));
	return post->refused ? CURL_SOCKET_BAD
			     : socket(address->family, address->socktype | SOCK_CLOEXEC,
				      address->protocol);
}

static size_t post_take_answer(char *bytes, size_t size, size_t count, void *owner)
{
	struct post_sending *post = owner;
	(void)bytes;
	post->answered += size * count;
	return post->answered > POST_ANSWER_MAX_BYTES ? 0 : size * count;
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static void post_add_header(struct post_sending *post, const char *name, const char *value)
{
	struct buf header;
	buf_init(&header, POST_SIGNED_MAX_BYTES);
	buf_printf(&header, "%s: %s", name, value);
	buf_append_char(&header, 0);
	ASSERT(!header.failed);
	struct curl_slist *added = curl_slist_append(post->headers, header.data);
	ASSERT(added); /* it allocates some bytes */
	post->headers = added;
	buf_release(&header);
}

static void post_sign(struct post_sending *post, const struct post_message *message)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	char value[POST_HEADER_MAX_BYTES];
	unsigned len = 0;
	struct buf text;
	buf_init(&text, POST_SIGNED_MAX_BYTES);
	buf_printf(&text, "%" PRId64 ".", message->wall_s);
	buf_append(&text, message->body.data, message->body.len);
	ASSERT(!text.failed);
	const unsigned char *made =
		HMAC(EVP_sha256(), message->secret.data, (int)message->secret.len,
		     (const unsigned char *)text.data, text.len, digest, &len);
	ASSERT(made && len == 32);
	size_t at = (size_t)snprintf(value, sizeof(value), "t=%" PRId64 ",v1=", message->wall_s);
	for (unsigned i = 0; i < len; i++)
		at += (size_t)snprintf(value + at, sizeof(value) - at, "%02x", digest[i]);
	post_add_header(post, "X-Granary-Signature", value);
	buf_release(&text);
}

static struct post_sending *post_new(struct posts *posts, void *owner)
{
	struct post_sending *post = mem_zalloc(sizeof(*post));
	CURL *easy = curl_easy_init();
	ASSERT(easy);
	*post = (struct post_sending){
		.posts = posts, .easy = easy, .owner = owner, .following = posts->list};
	posts->list = post;
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)POST_TIMEOUT_S);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)POST_CONNECT_S);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, post->error);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, post_open);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, post);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, post_take_answer);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, post);
	return post;
}

void posts_start(struct posts *posts, const struct post_message *message, void *owner)
{
	struct post_sending *post = post_new(posts, owner);
	CURL *easy = post->easy;
	post_add_header(post, "Content-Type", "application/json");
	post_add_header(post, "X-Granary-Id", message->id);
	post_add_header(post, "Expect", "");
	if (message->secret.len)
		post_sign(post, message);
	curl_easy_setopt(easy, CURLOPT_URL, message->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "granary");
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)message->body.len);
	curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, message->body.data);
	curl_multi_add_handle(posts->multi, easy);
}

/* RFC 2047: encoded words of at most 75 characters, each of whole characters of UTF-8. */
static void post_add_subject(struct post_sending *post, struct slice subject)
{
	struct buf header;
	buf_init(&header, POST_SIGNED_MAX_BYTES);
	while (subject.len) {
		unsigned char word[POST_WORD_BYTES * 2];
		size_t len = smaller_of(subject.len, POST_WORD_BYTES);
		while (len < subject.len && len > 1 && (subject.data[len] & 0xc0) == 0x80)
			len--;
		int made = EVP_EncodeBlock(word, (const unsigned char *)subject.data, (int)len);
		buf_printf(&header, "%s=?utf-8?B?%.*s?=", header.len ? "\r\n " : "", made,
			   (const char *)word);
		subject = (struct slice){subject.data + len, subject.len - len};
	}
	buf_append_char(&header, 0);
	ASSERT(!header.failed);
	post_add_header(post, "Subject", header.data);
	buf_release(&header);
}

static void post_add_date(struct post_sending *post, int64_t wall_s)
{
	char value[POST_HEADER_MAX_BYTES];
	time_t seconds = (time_t)wall_s;
	struct tm utc;
	gmtime_r(&seconds, &utc);
	strftime(value, sizeof(value), "%a, %d %b %Y %H:%M:%S +0000", &utc);
	post_add_header(post, "Date", value);
}

void posts_start_mail(struct posts *posts, const struct post_mail *mail, void *owner)
{
	struct post_sending *post = post_new(posts, owner);
	char id[POST_HEADER_MAX_BYTES];
	CURL *easy = post->easy;
	post->mime = curl_mime_init(easy);
	curl_mimepart *part = curl_mime_addpart(post->mime);
	ASSERT(part);
	curl_mime_data(part, mail->text.data, mail->text.len);
	curl_mime_type(part, "text/plain; charset=utf-8");
	curl_mime_encoder(part, "base64");
	snprintf(id, sizeof(id), "<%s@granary>", mail->id);
	post_add_header(post, "From", mail->from);
	post_add_header(post, "To", mail->to);
	post_add_subject(post, mail->subject);
	post_add_date(post, mail->wall_s);
	post_add_header(post, "Message-ID", id);
	post_add_header(post, "Auto-Submitted", "auto-generated");
	post->receivers = curl_slist_append(NULL, mail->to);
	/* A connection on which an answer came too late has it before the next one's. */
	curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, post_sockets_close);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, posts->sockets);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)POST_MAIL_S);
	curl_easy_setopt(easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)POST_MAIL_ANSWER_S);
	curl_easy_setopt(easy, CURLOPT_URL, mail->server);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
	curl_easy_setopt(easy, CURLOPT_MAIL_FROM, mail->from);
	curl_easy_setopt(easy, CURLOPT_MAIL_RCPT, post->receivers);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers);
	curl_easy_setopt(easy, CURLOPT_MIMEPOST, post->mime);
	curl_multi_add_handle(posts->multi, easy);
}

/* ---- Publishing ------------------------------------------------------------------------------ */

static void post_on_published(struct task *task)
{
	struct post_publishing *publishing =
		CONTAINER_OF(task, struct post_publishing, publication.task);
	publishing->following = publishing->posts->published;
	publishing->posts->published = publishing;
}

/* On the broker's thread. */
static void post_end_publishing(struct publication *publication)
{
	struct post_publishing *publishing =
		CONTAINER_OF(publication, struct post_publishing, publication);
	struct executor *executor = &job_queue(publishing->posts->job)->executor;
	CURLM *multi = publishing->posts->multi;
	publication->task.run = post_on_published;
	executor->post(executor, &publication->task);
	curl_multi_wakeup(multi);
}

static int posts_find_publisher(struct posts *posts, const struct amqp_address *address,
				struct publisher **to)
{
	struct post_broker *broker = posts->brokers;
	while (broker && broker->address != address)
		broker = broker->following;
	if (!broker) {
		struct executor *executor = &job_queue(posts->job)->executor;
		int err = publisher_start(address, executor, to);
		if (err)
			return err;
		broker = mem_zalloc(sizeof(*broker));
		*broker = (struct post_broker){address, *to, posts->brokers};
		posts->brokers = broker;
	}
	*to = broker->publisher;
	return 0;
}

int posts_start_publishing(struct posts *posts, const struct amqp_address *broker,
			   const struct broker_publication *message, void *owner, struct errbuf *e)
{
	struct publisher *publisher;
	int err = posts_find_publisher(posts, broker, &publisher);
	if (err)
		return errbuf_set(e, err, "%d background jobs run, which is the most", JOBS_MAX);
	struct post_publishing *publishing = mem_zalloc(sizeof(*publishing));
	publishing->posts = posts;
	publishing->owner = owner;
	publishing->id = mem_copy_text(slice_of(message->id));
	publishing->body = mem_copy_text(message->body);
	publishing->publication = (struct publication){
		.content = *message, .publisher = publisher, .done = post_end_publishing};
	publishing->publication.content.id = publishing->id;
	publishing->publication.content.body.data = publishing->body;
	publisher_publish(&publishing->publication);
	return 0;
}

/* ---- The end --------------------------------------------------------------------------------- */

void posts_wait(struct posts *posts, int ms)
{
	int running;
	curl_multi_perform(posts->multi, &running);
	curl_multi_poll(posts->multi, NULL, 0, ms, NULL);
	curl_multi_perform(posts->multi, &running);
	task_queue_run(job_queue(posts->job));
}

static void post_judge(struct post_sending *post, CURLcode code, struct post_result *result)
{
	long status = 0;
	curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &status);
	result->owner = post->owner;
	result->taken = post->mime ? code == CURLE_OK : status >= 200 && status < 300;
	if (post->refused)
		snprintf(result->reason, sizeof(result->reason), "its address is an internal one");
	else if (!post->mime && status)
		snprintf(result->reason, sizeof(result->reason), "it answered %ld", status);
	else
		snprintf(result->reason, sizeof(result->reason), "%s",
			 post->error[0] ? post->error : curl_easy_strerror(code));
}

static bool posts_take_published(struct posts *posts, struct post_result *result)
{
	const struct post_publishing *publishing = posts->published;
	if (!publishing)
		return false;
	result->owner = publishing->owner;
	result->taken = publishing->publication.taken;
	snprintf(result->reason, sizeof(result->reason), "%s", publishing->publication.why.text);
	post_free_published(posts);
	return true;
}

bool posts_take(struct posts *posts, struct post_result *result)
{
	int left;
	if (posts_take_published(posts, result))
		return true;
	const CURLMsg *message = curl_multi_info_read(posts->multi, &left);
	while (message && message->msg != CURLMSG_DONE)
		message = curl_multi_info_read(posts->multi, &left);
	if (!message)
		return false;
	char *owner = NULL;
	CURLcode code = message->data.result;
	curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
	struct post_sending *post = (struct post_sending *)(void *)owner;
	post_judge(post, code, result);
	post_free(post);
	return true;
}
