#include "net/addr.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

bool addr_parse(const char *s, size_t n, struct net_addr *out)
{
	char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 2], *percent;
	struct net_addr a;
	uint64_t scope = 0;

	memset(&a, 0, sizeof a);
	if (n == 0 || str_copyn(text, sizeof text, s, n) < 0 || strlen(text) != n)
		return false;
	if (inet_pton(AF_INET, text, a.b) == 1) {
		*out = a;
		return true;
	}
	percent = strchr(text, '%');
	if (percent != NULL) {
		*percent++ = 0;
		if (str_u64(percent, 1, UINT32_MAX, &scope) < 0)
			scope = if_nametoindex(percent);
		if (scope == 0)
			return false;
	}
	if (inet_pton(AF_INET6, text, a.b) != 1)
		return false;
	a.v6 = true;
	a.scope = (uint32_t)scope;
	*out = a;
	return true;
}

bool addr_same(const struct net_addr *a, const struct net_addr *b)
{
	return a->v6 == b->v6 && memcmp(a->b, b->b, a->v6 ? 16 : 4) == 0 && a->scope == b->scope;
}

void addr_text(const struct net_addr *a, char dst[ADDR_TEXT_MAX])
{
	char ip[INET6_ADDRSTRLEN], scope[16] = "";
	int r;

	if (inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->b, ip, sizeof ip) == NULL)
		ip[0] = 0;
	if (a->scope != 0 && str_fmt(scope, sizeof scope, "%%%u", (unsigned)a->scope) < 0)
		scope[0] = 0;
	if (a->port == 0)
		r = str_fmt(dst, ADDR_TEXT_MAX, "%s%s", ip, scope);
	else
		r = str_fmt(dst, ADDR_TEXT_MAX, a->v6 ? "[%s%s]:%u" : "%s%s:%u", ip, scope,
			    (unsigned)a->port);
	if (r < 0)
		dst[0] = 0;
}

socklen_t addr_sockaddr(const struct net_addr *a, struct sockaddr_storage *out)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	memset(out, 0, sizeof *out);
	if (!a->v6) {
		memset(&v4, 0, sizeof v4);
		v4.sin_family = AF_INET;
		v4.sin_port = htons(a->port);
		memcpy(&v4.sin_addr, a->b, 4);
		memcpy(out, &v4, sizeof v4);
		return sizeof v4;
	}
	memset(&v6, 0, sizeof v6);
	v6.sin6_family = AF_INET6;
	v6.sin6_port = htons(a->port);
	v6.sin6_scope_id = a->scope;
	memcpy(&v6.sin6_addr, a->b, 16);
	memcpy(out, &v6, sizeof v6);
	return sizeof v6;
}

bool addr_is_loopback(const struct net_addr *a)
{
	static const unsigned char one[16] = {[15] = 1};
	static const unsigned char mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};

	if (!a->v6)
		return a->b[0] == 127;
	return memcmp(a->b, one, sizeof one) == 0 || memcmp(a->b, mapped, sizeof mapped) == 0;
}

bool addr_in(const struct net_addr *a, const struct net_addr *net, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (a->v6 != net->v6 || bits > (a->v6 ? 128u : 32u))
		return false;
	if (memcmp(a->b, net->b, whole) != 0)
		return false;
	return rest == 0 || (((unsigned)a->b[whole] ^ net->b[whole]) >> (8 - rest)) == 0;
}
