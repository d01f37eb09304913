#include "ingest/listener_protocol.h"

#include "base/log.h"
#include "base/stats.h"
#include "ingest/line_feed.h"
#include "ingest/put_lines.h"

static uint64_t listener_protocol_count_lines(struct slice bytes)
{
	uint64_t count = 0;
	const char *at = bytes.data, *end = bytes.data + bytes.len;
	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		count++;
		at++;
	}
	return count;
}

static void listener_protocol_feed_line(struct listener_lines *lines)
{
	struct slice bytes = lines->bytes;
	struct line_feed feed;
	line_feed_init(&feed, lines->r, lines->tenant, lines->precision);
	feed.line = lines->line;
	feed.line_max_bytes = lines->line_max_bytes;
	line_feed_piece(&feed, bytes);
	line_feed_try(&feed);
	lines->open = feed.carry.len < bytes.len ? feed.carry.len : bytes.len;
	if (lines->last) {
		line_feed_end(&feed);
		lines->open = 0;
	}
	line_feed_release(&feed);
	lines->taken = bytes.len - lines->open;
	lines->line += listener_protocol_count_lines((struct slice){bytes.data, lines->taken});
}

const struct listener_protocol listener_protocols[LISTENER_PROTOCOLS] = {
	{.name = "line_tcp",
	 .what = "line protocol over TCP",
	 .listen = CONF_ID_line_tcp_listen,
	 .tenant = CONF_ID_line_tcp_tenant,
	 .networks = CONF_ID_line_tcp_networks,
	 .precision = CONF_ID_line_tcp_precision,
	 .feed = listener_protocol_feed_line},
	{.name = "opentsdb",
	 .what = "OpenTSDB's put",
	 .listen = CONF_ID_opentsdb_listen,
	 .tenant = CONF_ID_opentsdb_tenant,
	 .networks = CONF_ID_opentsdb_networks,
	 .precision = CONF_OPTIONS,
	 .feed = put_lines_feed,
	 .tell_refusals = put_lines_refusals,
	 .find_command = put_lines_command,
	 .answer = put_lines_answer},
	{.name = "line_udp",
	 .what = "line protocol over UDP",
	 .listen = CONF_ID_line_udp_listen,
	 .tenant = CONF_ID_line_udp_tenant,
	 .networks = CONF_ID_line_udp_networks,
	 .precision = CONF_ID_line_udp_precision,
	 .datagrams = true},
};

bool listener_protocol_lets_in(const struct listener_protocol *protocol,
			       const struct loop_networks *networks,
			       const struct loop_address *sender, struct log_rate *lines,
			       int64_t now_ms)
{
	char text[LOOP_ADDRESS_TEXT_BYTES];
	if (!networks->count || loop_networks_have(networks, sender))
		return true;
	stat_add(protocol->datagrams ? STAT_udp_outsiders : STAT_tcp_outsiders, 1);
	log_rated(lines, now_ms, LOG_WARN, "%s of %s is not taken: it is not in %s.networks",
		  protocol->what, loop_address_text(sender, text), protocol->name);
	return false;
}

void listener_protocol_log_refusals(const struct listener_protocol *protocol,
				    const struct ingest_request *r)
{
	log_debug("%s: %llu refused, line %llu, column %u: %s", protocol->name,
		  (unsigned long long)r->refused, (unsigned long long)r->errors[0].place.index,
		  r->errors[0].place.column, r->errors[0].sentence);
}
