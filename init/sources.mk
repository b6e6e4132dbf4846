init_src :=
