# Debian sorts 1.0.0~rc1 before 1.0.0, and 1.0.0-rc1 behind it.
string(REPLACE "-" "~" CPACK_DEBIAN_PACKAGE_VERSION "${CPACK_PACKAGE_VERSION}")
