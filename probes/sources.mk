probes_src :=
