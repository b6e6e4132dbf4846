/* What nvidia-smi prints may be anything, a driver in trouble included. */
#include "probes/internal.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct smi m;

	(void)smi_parse((const char *)data, size, &m);
	for (unsigned i = 0; i < m.n_gpus; i++)
		if (strlen(m.gpu[i].name) >= sizeof m.gpu[i].name ||
		    strlen(m.gpu[i].throttle) >= sizeof m.gpu[i].throttle)
			__builtin_trap();
	for (unsigned i = 0; i < m.n_procs; i++)
		if (m.proc[i].gpu >= SMI_GPUS_MAX)
			__builtin_trap();
	return 0;
}
