# `cpack -G DEB` in a build directory makes two Debian packages of what is built there:
#
#   hearth         the server, the libraries that ship, and what a Debian machine runs them with
#   libhearth-dev  the CMake package for authors
#
# They hold what `cmake --install` installs, and the components deb_run and deb_dev, which are in
# packages only.
include(GNUInstallDirs)
set(debian ${CMAKE_CURRENT_LIST_DIR}/debian)

install(FILES ${debian}/hearth.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT server)
install(FILES ${debian}/hearth.bash-completion RENAME hearth
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT server)

function(hearth_packaged component destination)
  install(FILES ${ARGN} DESTINATION ${destination} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
hearth_packaged(deb_run /etc/hearth ${debian}/hearth.yaml)
install(DIRECTORY DESTINATION /etc/hearth/classes COMPONENT deb_run EXCLUDE_FROM_ALL)
hearth_packaged(deb_run /lib/systemd/system ${debian}/hearth.service ${debian}/hearth-backup.service ${debian}/hearth-backup.timer)
hearth_packaged(deb_run /usr/lib/sysusers.d ${debian}/hearth.sysusers RENAME hearth.conf)
hearth_packaged(deb_run /usr/lib/tmpfiles.d ${debian}/hearth.tmpfiles RENAME hearth.conf)
hearth_packaged(deb_run /usr/share/lintian/overrides ${debian}/hearth.lintian-overrides RENAME hearth)
hearth_packaged(deb_run /usr/share/doc/hearth LICENSE RENAME copyright)
hearth_packaged(deb_run /usr/share/doc/hearth CHANGELOG.md)
if(HEARTH_HAS_CONSOLE)
  hearth_packaged(deb_run /usr/share/doc/hearth ${CMAKE_BINARY_DIR}/host/console/console-notices.txt)
endif()
hearth_packaged(deb_run /usr/share/doc/hearth/config config/README.md)
hearth_packaged(deb_run /usr/share/doc/hearth/packaging packaging/README.md)
hearth_packaged(deb_run /usr/share/doc/hearth/examples config/hearth.yaml packaging/hearth-alerts.yml)
install(DIRECTORY config/classes DESTINATION /usr/share/doc/hearth/examples COMPONENT deb_run EXCLUDE_FROM_ALL)
hearth_packaged(deb_dev /usr/share/doc/libhearth-dev LICENSE RENAME copyright)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hearth)
set(CPACK_PACKAGE_VERSION ${HEARTH_VERSION})
set(CPACK_PACKAGE_CONTACT "The Hearth authors <hearth@example.org>")
set(CPACK_COMPONENTS_ALL server plugins deb_run sdk deb_dev)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PROJECT_CONFIG_FILE ${debian}/version.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${debian}/staged.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# sysusers and tmpfiles come with systemd; a machine without systemd can have them alone.
set(CPACK_DEBIAN_RUN_PACKAGE_NAME hearth)
set(CPACK_DEBIAN_RUN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_RUN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUN_PACKAGE_DEPENDS
    "systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles, tzdata")
set(CPACK_DEBIAN_RUN_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_RUN_PACKAGE_SUGGESTS libhearth-dev)
set(CPACK_DEBIAN_RUN_DESCRIPTION "server for stateful agents
Hearth serves agents: long-lived objects, each with a class, a name and its
own SQLite database. Clients reach them over WebSocket and HTTP. Their work
survives restarts and crashes. Their classes are shared libraries, which the
server replaces while it runs.")
set(CPACK_DEBIAN_RUN_PACKAGE_CONTROL_EXTRA
    ${debian}/conffiles ${debian}/postinst ${debian}/prerm ${debian}/postrm)

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libhearth-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libhowardhinnant-date-dev, libsqlite3-dev, nlohmann-json3-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "clang-19, cmake, hearth, libgtest-dev, ninja-build")
set(CPACK_DEBIAN_DEV_DESCRIPTION "libraries and headers for agents of Hearth
With these files C++ and C code becomes a library of agents that the server
Hearth serves: Hearth::plugin_api, Hearth::chat for conversations with
models, Hearth::testing for tests without a server, and a crate for Rust.")

include(CPack)
cpack_add_component(server GROUP run)
cpack_add_component(plugins GROUP run)
cpack_add_component(deb_run GROUP run)
cpack_add_component(sdk GROUP dev)
cpack_add_component(deb_dev GROUP dev)
