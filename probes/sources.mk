probes_src := probes/table.c probes/run.c probes/vendor.c probes/nodes.c probes/libs.c probes/smi.c probes/smi_xml.c \
	probes/smi_judge.c probes/files.c probes/system.c probes/python.c probes/scripts.c probes/report.c \
	probes/selftest.c probes/gate.c

# The assembler reads them into scripts.c's object; the compiler's dependency files do not know of it.
build/obj/probes/scripts.o build/check/probes/scripts.o: probes/py/common.py probes/py/build.py probes/py/image.py \
	probes/py/gpu_cuda.py probes/py/gpu_torch.py
