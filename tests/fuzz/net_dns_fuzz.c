/* DNS answers to the question "ab.c", A or AAAA by the first byte; the id is the one that the
 * message has. */
#include "net/dns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_answer a;
	unsigned char q[DNS_QUERY_MAX], *copy;
	uint16_t type, id;
	char name[DNS_NAME_TEXT_MAX];

	if (size < 3)
		return 0;
	type = data[0] & 1 ? DNS_A : DNS_AAAA;
	id = (uint16_t)(data[1] << 8 | data[2]);
	copy = malloc(size - 1);
	if (copy == NULL)
		abort();
	memcpy(copy, data + 1, size - 1);
	if (dns_answer_parse(copy, size - 1, "ab.c", type, id, &a) == DNS_ANSWER) {
		if (a.n > DNS_ANSWER_ADDRS || a.rcode > 15)
			abort();
		for (size_t i = 0; i < a.n; i++)
			if (a.addr[i].v6 != (type == DNS_AAAA))
				abort();
	}
	free(copy);
	if (size < sizeof name) {
		memcpy(name, data, size);
		name[size] = 0;
		if (dns_query(q, name, type, id) > DNS_QUERY_MAX)
			abort();
	}
	return 0;
}
