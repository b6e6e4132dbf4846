net_src :=
