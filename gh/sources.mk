gh_src :=
