#include "net/resolve.h"

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/str.h"
#include "net/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#define NEXT_SERVER_MS 500  /* head start of a server over the next one */
#define ROUND_MS       1000 /* pause after all were asked; doubled each round up to the cap */
#define ROUND_CAP_MS   4000
#define ROUNDS_FAILED  2 /* every server failing so often ends the look-up */

static void lookup_init(struct resolve_lookup *l, uint16_t type)
{
	memset(l, 0, sizeof *l);
	l->type = type;
	l->id = (uint16_t)io_random();
	l->tcp = -1;
	for (size_t i = 0; i < DNS_SERVERS_MAX; i++)
		l->udp[i] = -1;
	l->next_ms = clock_mono_ms();
}

static void lookup_close(struct resolve_lookup *l)
{
	for (size_t i = 0; i < DNS_SERVERS_MAX; i++)
		fd_close(&l->udp[i]);
	fd_close(&l->tcp);
}

static void add_address(struct resolve *r, const struct net_addr *a)
{
	for (size_t i = 0; i < r->n; i++)
		if (addr_same(&r->addr[i], a))
			return;
	if (r->n == RESOLVE_ADDRS)
		return;
	r->addr[r->n++] = *a;
	if (r->first_ms == 0)
		r->first_ms = clock_mono_ms();
}

static void finish(struct resolve *r, enum resolve_fault fault)
{
	lookup_close(&r->l[0]);
	lookup_close(&r->l[1]);
	r->done = true;
	r->fault = r->n > 0 ? RF_NONE : fault;
}

/* The name of try `i`: as it is, or with one of the search domains. False: it would be too long. */
static bool try_name(struct resolve *r, size_t i)
{
	bool dotted = strchr(r->host, '.') != NULL;
	size_t plain = dotted ? 0 : r->conf.n_search;

	if (i == plain)
		return str_copy(r->name, sizeof r->name, r->host) == 0;
	return str_fmt(r->name, sizeof r->name, "%s.%s", r->host,
		       r->conf.search[dotted ? i - 1 : i]) == 0;
}

static void ask_from(struct resolve *r, size_t first)
{
	for (r->tries = first; r->tries < r->n_tries; r->tries++) {
		unsigned char probe[DNS_QUERY_MAX];
		if (!try_name(r, r->tries) || dns_query(probe, r->name, DNS_A, 0) == 0)
			continue;
		lookup_close(&r->l[0]);
		lookup_close(&r->l[1]);
		lookup_init(&r->l[0], DNS_AAAA);
		lookup_init(&r->l[1], DNS_A);
		return;
	}
	finish(r, r->fault == RF_NONE ? RF_NO_NAME : r->fault);
}

static bool is_localhost(const char *host)
{
	size_t n = strlen(host);

	return strcmp(host, "localhost") == 0 ||
	       (n > 10 && strcmp(host + n - 10, ".localhost") == 0);
}

static bool from_files(struct resolve *r, const char *hosts)
{
	cleanup_buf struct buf text;
	struct net_addr found[RESOLVE_ADDRS];
	size_t n;

	buf_init(&text, 1u << 20);
	if (addr_parse(r->host, strlen(r->host), &found[0])) {
		add_address(r, &found[0]);
		return true;
	}
	if (fs_read(AT_FDCWD, hosts, &text, NULL) == 0) {
		n = dns_hosts_find(buf_str(&text), text.len, r->host, found, RESOLVE_ADDRS);
		for (size_t i = 0; i < n; i++)
			add_address(r, &found[i]);
	}
	if (r->n == 0 && is_localhost(r->host)) { /* RFC 6761: never asked of a server */
		if (addr_parse("::1", 3, &found[0]))
			add_address(r, &found[0]);
		if (addr_parse("127.0.0.1", 9, &found[0]))
			add_address(r, &found[0]);
	}
	return r->n > 0;
}

void resolve_start(struct resolve *r, const char *host, const char *resolv_conf, const char *hosts)
{
	cleanup_buf struct buf text;

	buf_init(&text, 65536);
	memset(r, 0, sizeof *r);
	r->began_ms = clock_mono_ms();
	lookup_init(&r->l[0], DNS_AAAA);
	lookup_init(&r->l[1], DNS_A);
	if (str_copy(r->host, sizeof r->host, host) < 0 || from_files(r, hosts)) {
		finish(r, RF_NO_NAME);
		return;
	}
	(void)fs_read(AT_FDCWD, resolv_conf, &text, NULL); /* absent: as if empty */
	dns_conf_parse(buf_str(&text), text.len, &r->conf);
	r->n_tries = 1 + r->conf.n_search;
	ask_from(r, 0);
}

void resolve_end(struct resolve *r)
{
	lookup_close(&r->l[0]);
	lookup_close(&r->l[1]);
	r->done = true;
}

/* ---- one look-up ---- */

static void server_failed(struct resolve *r, struct resolve_lookup *l, size_t k,
			  enum resolve_fault why)
{
	bool all = true;

	l->failed[k] = true;
	l->why[k] = why;
	for (size_t i = 0; i < r->conf.n_servers; i++)
		all = all && l->failed[i];
	if (r->conf.n_servers > 1 && l->sends % r->conf.n_servers != 0)
		l->next_ms = clock_mono_ms(); /* the next server need not wait */
	if (!all || l->sends < ROUNDS_FAILED * r->conf.n_servers)
		return;
	l->done = true;
	l->fault = RF_NO_SERVER; /* unless one at least answers */
	for (size_t i = 0; i < r->conf.n_servers; i++)
		if (l->why[i] == RF_SERVER)
			l->fault = RF_SERVER;
}

static void send_next(struct resolve *r, struct resolve_lookup *l)
{
	size_t servers = r->conf.n_servers, k = l->sends % servers;
	unsigned round = l->sends / (unsigned)servers;
	unsigned char q[DNS_QUERY_MAX];
	size_t n = dns_query(q, r->name, l->type, l->id);
	struct sockaddr_storage sa;
	socklen_t salen = addr_sockaddr(&r->conf.server[k], &sa);
	int64_t pause = round >= 2 ? ROUND_CAP_MS : (int64_t)ROUND_MS << round;

	l->sends++;
	l->next_ms = clock_mono_ms() + (l->sends % servers != 0 ? NEXT_SERVER_MS : pause);
	if (l->udp[k] < 0) {
		l->udp[k] = io_socket(sa.ss_family, SOCK_DGRAM);
		if (l->udp[k] >= 0 && connect(l->udp[k], (struct sockaddr *)&sa, salen) < 0)
			fd_close(&l->udp[k]);
	}
	if (l->udp[k] < 0 || send(l->udp[k], q, n, MSG_NOSIGNAL) < 0) {
		fd_close(&l->udp[k]);
		server_failed(r, l, k, RF_NO_SERVER);
	}
}

static void start_tcp(struct resolve *r, struct resolve_lookup *l, size_t k)
{
	struct sockaddr_storage sa;
	socklen_t salen = addr_sockaddr(&r->conf.server[k], &sa);
	size_t n = dns_query(l->tcp_out + 2, r->name, l->type, l->id);

	if (l->tcp >= 0)
		return; /* another server was truncated first: one is enough */
	l->tcp_out[0] = (unsigned char)(n >> 8);
	l->tcp_out[1] = (unsigned char)n;
	l->tcp_server = k;
	l->tcp_sent = l->tcp_got = 0;
	l->tcp = io_socket(sa.ss_family, SOCK_STREAM);
	if (l->tcp >= 0 && connect(l->tcp, (struct sockaddr *)&sa, salen) < 0 &&
	    errno != EINPROGRESS)
		fd_close(&l->tcp);
	if (l->tcp < 0)
		server_failed(r, l, k, RF_NO_SERVER);
}

static void take_answer(struct resolve *r, struct resolve_lookup *l, size_t k,
			const struct dns_answer *a)
{
	if (a->rcode == 3) {
		l->done = true;
		l->fault = RF_NO_NAME;
	} else if (a->rcode != 0) {
		server_failed(r, l, k, RF_SERVER);
	} else {
		for (size_t i = 0; i < a->n; i++)
			add_address(r, &a->addr[i]);
		l->done = true;
		l->fault = a->n > 0 ? RF_NONE : RF_NO_DATA;
	}
}

static void read_udp(struct resolve *r, struct resolve_lookup *l, size_t k)
{
	unsigned char m[DNS_MESSAGE_MAX];
	struct dns_answer a;
	ssize_t n;

	while (!l->done && l->udp[k] >= 0) {
		n = recv(l->udp[k], m, sizeof m, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n < 0) { /* ICMP: nobody there */
			fd_close(&l->udp[k]);
			server_failed(r, l, k, RF_NO_SERVER);
			return;
		}
		if (dns_answer_parse(m, (size_t)n, r->name, l->type, l->id, &a) != DNS_ANSWER)
			continue;
		if (a.truncated && a.rcode == 0) {
			l->partial = a;
			start_tcp(r, l, k);
		} else {
			take_answer(r, l, k, &a);
		}
	}
}

/* The part of a list that fitted into the datagram is better than nothing. */
static void tcp_failed(struct resolve *r, struct resolve_lookup *l)
{
	fd_close(&l->tcp);
	if (l->partial.n > 0)
		take_answer(r, l, l->tcp_server, &l->partial);
	else
		server_failed(r, l, l->tcp_server, RF_SERVER);
}

static void step_tcp(struct resolve *r, struct resolve_lookup *l)
{
	size_t out = 2 + ((size_t)l->tcp_out[0] << 8 | l->tcp_out[1]), in = 0;
	struct dns_answer a;
	ssize_t n;

	while (l->tcp_sent < out) {
		n = send(l->tcp, l->tcp_out + l->tcp_sent, out - l->tcp_sent, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == ENOTCONN || errno == EINTR))
			return;
		if (n < 0) {
			tcp_failed(r, l);
			return;
		}
		l->tcp_sent += (size_t)n;
	}
	while (l->tcp_got < 2 ||
	       l->tcp_got < (in = 2 + ((size_t)l->tcp_in[0] << 8 | l->tcp_in[1]))) {
		size_t want = l->tcp_got < 2 ? 2 - l->tcp_got : in - l->tcp_got;
		if (in > sizeof l->tcp_in) {
			tcp_failed(r, l);
			return;
		}
		n = recv(l->tcp, l->tcp_in + l->tcp_got, want, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			tcp_failed(r, l);
			return;
		}
		l->tcp_got += (size_t)n;
	}
	if (dns_answer_parse(l->tcp_in + 2, in - 2, r->name, l->type, l->id, &a) != DNS_ANSWER) {
		tcp_failed(r, l);
		return;
	}
	fd_close(&l->tcp);
	take_answer(r, l, l->tcp_server, &a);
}

static void step_lookup(struct resolve *r, struct resolve_lookup *l)
{
	for (size_t k = 0; k < r->conf.n_servers; k++)
		read_udp(r, l, k);
	if (!l->done && l->tcp >= 0)
		step_tcp(r, l);
	/* a failing send makes the next one due at once, so each server gets its turn here */
	while (!l->done && l->tcp < 0 && clock_mono_ms() >= l->next_ms)
		send_next(r, l);
	if (l->done)
		lookup_close(l);
}

/* Of two faults, the one that tells more about what to cure. */
static enum resolve_fault worse(enum resolve_fault a, enum resolve_fault b)
{
	return a > b ? a : b;
}

void resolve_step(struct resolve *r)
{
	enum resolve_fault f;

	if (r->done)
		return;
	step_lookup(r, &r->l[0]);
	step_lookup(r, &r->l[1]);
	if (r->l[0].fault == RF_NO_NAME || r->l[1].fault == RF_NO_NAME)
		r->l[0].done = r->l[1].done = true; /* there is no name for either family */
	if (!r->l[0].done || !r->l[1].done)
		return;
	f = worse(r->l[0].fault, r->l[1].fault);
	if (r->n == 0 && f <= RF_NO_DATA) {
		r->fault = worse(r->fault, f);
		ask_from(r, r->tries + 1);
		return;
	}
	finish(r, f);
}

size_t resolve_fds(const struct resolve *r, struct pollfd *fds)
{
	size_t n = 0;

	if (r->done)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		const struct resolve_lookup *l = &r->l[i];
		for (size_t k = 0; k < DNS_SERVERS_MAX; k++)
			if (l->udp[k] >= 0)
				fds[n++] = (struct pollfd){l->udp[k], POLLIN, 0};
		if (l->tcp >= 0) {
			size_t out = 2 + ((size_t)l->tcp_out[0] << 8 | l->tcp_out[1]);
			fds[n++] = (struct pollfd){l->tcp, l->tcp_sent < out ? POLLOUT : POLLIN, 0};
		}
	}
	return n;
}

struct deadline resolve_when(const struct resolve *r)
{
	struct deadline d = DEADLINE_NEVER;

	for (size_t i = 0; !r->done && i < 2; i++)
		if (!r->l[i].done && r->l[i].tcp < 0)
			d = deadline_min(d, (struct deadline){r->l[i].next_ms});
	return d;
}

bool resolve_v6_settled(const struct resolve *r)
{
	return r->done || r->l[0].done;
}

void resolve_explain(const struct resolve *r, char *dst, size_t size)
{
	static const char *const why[RF__MAX] = {[RF_NONE] = "no answer yet",
						 [RF_NO_NAME] = "there is no such name (NXDOMAIN)",
						 [RF_NO_DATA] = "the name has no addresses",
						 [RF_NO_SERVER] = "no DNS server can be reached",
						 [RF_SERVER] =
							 "the DNS servers answer with a failure",
						 [RF_SILENT] = "the DNS servers do not answer"};
	char servers[3 * ADDR_TEXT_MAX + 8] = "", one[ADDR_TEXT_MAX];
	enum resolve_fault f = r->done ? r->fault : RF_SILENT;

	for (size_t i = 0; i < r->conf.n_servers; i++) {
		struct net_addr a = r->conf.server[i];
		size_t n = strlen(servers);
		a.port = a.port == 53 ? 0 : a.port;
		addr_text(&a, one);
		(void)str_fmt(servers + n, sizeof servers - n, "%s%s", n > 0 ? ", " : "", one);
	}
	for (size_t i = 0; !r->done && i < 2; i++)
		for (size_t k = 0; k < r->conf.n_servers; k++)
			if (r->l[i].failed[k])
				f = r->l[i].why[k];
	if (str_fmt(dst, size, "%s (asked: %s)", why[f], servers[0] != 0 ? servers : "no server") <
	    0)
		(void)str_copy(dst, size, why[f]);
}
