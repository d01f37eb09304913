/* TLS without sockets (tls_private.h). OpenSSL reads and writes through a BIO of our own: it takes
 * from a slice of the caller's, without a copy, and appends to a buffer of the caller's. A memory
 * BIO would keep for each connection as much as it once held.
 *
 * OpenSSL's queue of errors belongs to the thread: it is emptied before each call whose errors are
 * looked at, since another connection may have left some there. */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>

#include "base/mem.h"
#include "loop/tls_private.h"

/* ---- The wire -------------------------------------------------------------------------------- */

static int tls_bio_read(BIO *bio, char *to, size_t max_bytes, size_t *len)
{
	struct tls *tls = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	*len = tls->in.len < max_bytes ? tls->in.len : max_bytes;
	if (!*len) {
		BIO_set_retry_read(bio);
		return 0;
	}
	memcpy(to, tls->in.data, *len);
	tls->in = (struct slice){tls->in.data + *len, tls->in.len - *len};
	return 1;
}

static int tls_bio_write(BIO *bio, const char *bytes, size_t len, size_t *written)
{
	struct tls *tls = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	*written = len;
	return !buf_append(tls->out, bytes, len);
}

static long tls_bio_ctrl(UNUSED BIO *bio, int command, UNUSED long number, UNUSED void *ptr)
{
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *tls_wire;
static pthread_once_t tls_wire_once = PTHREAD_ONCE_INIT;

/* As long as the process. */
static void tls_make_wire(void)
{
	tls_wire = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "granary wire");
	ASSERT(tls_wire && BIO_meth_set_read_ex(tls_wire, tls_bio_read) &&
	       BIO_meth_set_write_ex(tls_wire, tls_bio_write) &&
	       BIO_meth_set_ctrl(tls_wire, tls_bio_ctrl));
}

/* ---- What went wrong ------------------------------------------------------------------------- */

static const struct {
	int reason; /* of OpenSSL's library of TLS */
	enum tls_fault fault;
} tls_reasons[] = {
	{SSL_R_HTTP_REQUEST, TLS_PLAIN_HTTP},
	{SSL_R_HTTPS_PROXY_REQUEST, TLS_PLAIN_HTTP},
	{SSL_R_WRONG_VERSION_NUMBER, TLS_NOT_TLS},
	{SSL_R_UNKNOWN_PROTOCOL, TLS_NOT_TLS},
	{SSL_R_UNSUPPORTED_PROTOCOL, TLS_VERSION},
	{SSL_R_VERSION_TOO_LOW, TLS_VERSION},
	{SSL_R_INAPPROPRIATE_FALLBACK, TLS_VERSION},
	{SSL_R_NO_SHARED_CIPHER, TLS_CIPHER},
	{SSL_R_NO_SUITABLE_GROUPS, TLS_CIPHER},
	{SSL_R_NO_SUITABLE_KEY_SHARE, TLS_CIPHER},
	{SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, TLS_CIPHER},
	{SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS, TLS_CIPHER},
	{SSL_R_NO_APPLICATION_PROTOCOL, TLS_PROTOCOL},
	{SSL_R_CERTIFICATE_VERIFY_FAILED, TLS_CERTIFICATE},
};

static enum tls_fault tls_fault_of(unsigned long err)
{
	if (ERR_GET_LIB(err) != ERR_LIB_SSL)
		return TLS_WRONG;
	if (ERR_GET_REASON(err) >= SSL_AD_REASON_OFFSET)
		return TLS_REFUSED;
	for (size_t i = 0; i < ARRAY_LEN(tls_reasons); i++)
		if (tls_reasons[i].reason == ERR_GET_REASON(err))
			return tls_reasons[i].fault;
	return TLS_WRONG;
}

static const char *const tls_fault_texts[TLS_FAULTS] = {
	[TLS_NOT_TLS] = "it does not speak TLS",
	[TLS_PLAIN_HTTP] = "it speaks HTTP without TLS: its address should begin with https://",
	[TLS_VERSION] = "it speaks no version of TLS from 1.2 on",
	[TLS_CIPHER] = "there is no cipher, group or signature in common",
	[TLS_PROTOCOL] = "none of the protocols that it wants within TLS is spoken here",
	[TLS_CERTIFICATE] = "its certificate is refused",
	[TLS_REFUSED] = "it refuses, and says why",
	[TLS_LEFT] = "it left",
	[TLS_LATE] = "the handshake took too long",
	[TLS_WRONG] = "it breaks the rules of TLS",
};

static enum tls_result tls_fail(struct tls *tls, enum tls_fault fault, const char *more)
{
	tls->fault = fault;
	snprintf(tls->why, sizeof(tls->why), "%s%s%s%s", tls_fault_texts[fault], more ? " (" : "",
		 more ? more : "", more ? ")" : "");
	return TLS_FAILED;
}

static enum tls_result tls_judge(struct tls *tls, int returned)
{
	int result = SSL_get_error(tls->ssl, returned);
	if (result == SSL_ERROR_WANT_READ)
		return TLS_WANTS_INPUT;
	if (result == SSL_ERROR_ZERO_RETURN)
		return TLS_AT_END;
	unsigned long err = ERR_peek_error();
	enum tls_fault fault = tls_fault_of(err);
	const char *more = ERR_reason_error_string(err);
	if (fault == TLS_CERTIFICATE)
		more = X509_verify_cert_error_string(SSL_get_verify_result(tls->ssl));
	return tls_fail(tls, fault, more);
}

void tls_be_cut(struct tls *tls)
{
	tls_fail(tls, TLS_LEFT, NULL);
}

void tls_be_late(struct tls *tls)
{
	tls_fail(tls, TLS_LATE, NULL);
}

void tls_be_wrong(struct tls *tls, const char *why)
{
	tls_fail(tls, TLS_WRONG, why);
}

/* ---- One connection -------------------------------------------------------------------------- */

/* Clients name the host they call, so that the other side can choose a certificate (SNI), and check
 * that the certificate bears this name. Addresses are not named so (RFC 6066, 3). */
static void tls_set_name(SSL *ssl, const char *name)
{
	uint8_t address[sizeof(struct in6_addr)];
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
		ASSERT(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name));
	else
		ASSERT(SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name));
}

void tls_init(struct tls *tls, const struct loop_tls *options, struct buf *out)
{
	pthread_once(&tls_wire_once, tls_make_wire);
	*tls = (struct tls){.ssl = SSL_new(options->context->ssl), .out = out};
	BIO *bio = BIO_new(tls_wire);
	ASSERT(tls->ssl && bio); /* they fail only without memory */
	tls->context = options->context;
	tls_context_hold(tls->context);
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(tls->ssl, bio, bio);
	if (options->context->is_server) {
		SSL_set_accept_state(tls->ssl);
		return;
	}
	SSL_set_connect_state(tls->ssl);
	tls_set_name(tls->ssl, options->name);
}

void tls_release(struct tls *tls)
{
	SSL_free(tls->ssl);
	tls_context_release(tls->context);
}

enum tls_result tls_shake_hands(struct tls *tls, bool *worked)
{
	OSSL_HANDSHAKE_STATE before = SSL_get_state(tls->ssl);
	ERR_clear_error();
	int done = SSL_do_handshake(tls->ssl);
	*worked = SSL_get_state(tls->ssl) != before;
	return done == 1 ? TLS_DONE : tls_judge(tls, done);
}

enum tls_result tls_read(struct tls *tls, char *to, size_t max_bytes, size_t *len)
{
	*len = 0;
	while (*len < max_bytes && !tls->why[0]) {
		size_t more = 0;
		ERR_clear_error();
		int got = SSL_read_ex(tls->ssl, to + *len, max_bytes - *len, &more);
		*len += more;
		if (got == 1)
			continue;
		/* The bytes before it go first; the next call meets the end or the fault again. */
		enum tls_result result = tls_judge(tls, got);
		return *len ? TLS_DONE : result;
	}
	return *len ? TLS_DONE : TLS_FAILED;
}

size_t tls_pending(const struct tls *tls)
{
	return (size_t)SSL_pending(tls->ssl);
}

enum tls_result tls_write(struct tls *tls, struct slice bytes)
{
	size_t written;
	ASSERT(bytes.len && bytes.len <= TLS_WRITE_MAX_BYTES);
	if (tls->why[0])
		return TLS_FAILED;
	ERR_clear_error();
	int done = SSL_write_ex(tls->ssl, bytes.data, bytes.len, &written);
	return done == 1 ? TLS_DONE : tls_judge(tls, done);
}

void tls_end(struct tls *tls)
{
	ERR_clear_error();
	SSL_shutdown(tls->ssl); /* it fails only where TLS is over already */
}
