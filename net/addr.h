/* An IPv4 or IPv6 address as a value, and ranges of them. */
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDR_TEXT_MAX 80 /* "[v6%scope]:port", with NUL */

struct net_addr {
	bool v6;
	unsigned char b[16]; /* network order; 4 of them for IPv4 */
	uint32_t scope;	     /* of a link-local IPv6 address; 0 none */
	uint16_t port;	     /* 0 where none is meant */
};

/* "1.2.3.4", "::1", "fe80::1%eth0" or "%2": true when it is one; the port is 0. */
bool addr_parse(const char *s, size_t n, struct net_addr *out);
bool addr_same(const struct net_addr *a, const struct net_addr *b); /* the port is not compared */
/* For messages; with "[…]:port" when it has one. */
void addr_text(const struct net_addr *a, char dst[ADDR_TEXT_MAX]);
/* Length of the socket address written. */
socklen_t addr_sockaddr(const struct net_addr *a, struct sockaddr_storage *out);

bool addr_is_loopback(const struct net_addr *a); /* 127.0.0.0/8, ::1, and ::ffff:127.0.0.0/104 */
/* The first `bits` bits agree and the family too. */
bool addr_in(const struct net_addr *a, const struct net_addr *net, unsigned bits);

#endif
