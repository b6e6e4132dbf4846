/* resolv.conf and hosts, which are not NUL-terminated. */
#include "net/dns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);
	struct dns_conf c;
	struct net_addr a[4];
	char text[ADDR_TEXT_MAX];
	size_t n;

	if (copy == NULL)
		abort();
	memcpy(copy, data, size);
	copy = realloc(copy, size > 0 ? size : 1);
	dns_conf_parse(copy, size, &c);
	if (c.n_servers == 0 || c.n_servers > DNS_SERVERS_MAX || c.n_search > DNS_SEARCH_MAX)
		abort();
	for (size_t i = 0; i < c.n_servers; i++)
		addr_text(&c.server[i], text);
	n = dns_hosts_find(copy, size, "host", a, 4);
	if (n > 4)
		abort();
	free(copy);
	return 0;
}
