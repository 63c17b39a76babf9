# man/: mdoc pages
dist_man_MANS +=
