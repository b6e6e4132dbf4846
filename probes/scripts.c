/* The Python of the checks, put into the binary by the assembler: it stays Python that can be read,
 * linted and run on its own. The paths are relative to where make runs, the top of the tree. */
#include "probes/internal.h"

#define SCRIPT(symbol, file)                                                                       \
	__asm__(".section .rodata\n"                                                               \
		".global " #symbol "\n"                                                            \
		".type " #symbol ", %object\n" #symbol ":\n"                                       \
		".incbin \"" file "\"\n"                                                           \
		".byte 0\n"                                                                        \
		".size " #symbol ", . - " #symbol "\n"                                             \
		".text\n")

SCRIPT(py_common, "probes/py/common.py");
SCRIPT(py_build, "probes/py/build.py");
SCRIPT(py_image, "probes/py/image.py");
SCRIPT(py_cuda, "probes/py/gpu_cuda.py");
SCRIPT(py_torch, "probes/py/gpu_torch.py");
