/*
 * DNS messages (RFC 1035) and the two files of the resolver, as pure functions on bytes: no socket,
 * no file, no allocation.
 */
#ifndef NET_DNS_H
#define NET_DNS_H

#include "net/addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNS_A	 1
#define DNS_AAAA 28

#define DNS_QUERY_MAX	  280  /* bytes of a question for the longest name */
#define DNS_MESSAGE_MAX	  4096 /* bytes of an answer, over TCP too */
#define DNS_ANSWER_ADDRS  16   /* addresses taken of one answer */
#define DNS_SERVERS_MAX	  3
#define DNS_SEARCH_MAX	  6
#define DNS_NAME_TEXT_MAX 256

/* Bytes written (at most DNS_QUERY_MAX), or 0 when `name` is no name. Recursion is asked for; no
 * EDNS: a bigger answer comes over TCP, which every middlebox lets through as it is. */
size_t dns_query(unsigned char dst[DNS_QUERY_MAX], const char *name, uint16_t type, uint16_t id);

enum dns_parsed {
	DNS_ANSWER, /* *out is filled */
	DNS_FOREIGN /* not the answer to this question, or malformed: wait for another */
};

struct dns_answer {
	unsigned rcode; /* 0 no error, 2 server failure, 3 no such name, 5 refused */
	bool truncated;
	size_t n;
	struct net_addr addr[DNS_ANSWER_ADDRS];
};

enum dns_parsed dns_answer_parse(const unsigned char *msg, size_t len, const char *name,
				 uint16_t type, uint16_t id, struct dns_answer *out);

struct dns_conf {
	size_t n_servers;
	struct net_addr server[DNS_SERVERS_MAX];
	size_t n_search;
	char search[DNS_SEARCH_MAX][DNS_NAME_TEXT_MAX];
};

/* resolv.conf: `nameserver ADDR` or `[ADDR]:PORT` (as OpenBSD has it), `search`, `domain`. The rest
 * is not needed and left. Without any server: 127.0.0.1, as libcs do. */
void dns_conf_parse(const char *text, size_t len, struct dns_conf *out);

/* Addresses of `name` (any case) in a hosts file: how many of at most `max` were put into `out`. */
size_t dns_hosts_find(const char *text, size_t len, const char *name, struct net_addr *out,
		      size_t max);

#endif
