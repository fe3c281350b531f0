# make install, find_package(bitale).
include(GNUInstallDirs)
