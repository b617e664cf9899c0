# CPack runs this between an install and the packages: what Debian's rules want of those files.

# Symbols stay: the server names the functions of a crash's stack from them.
foreach(pattern IN ITEMS run/usr/bin/hearth run/usr/lib/hearth/plugins/*.so dev/usr/lib/*.a)
  file(GLOB found ${CPACK_TEMPORARY_DIRECTORY}/${pattern})
  if(NOT found)
    message(FATAL_ERROR "The packages have no ${pattern}. Build the target `shipped`, in a build "
                        "directory that is configured with -DCMAKE_INSTALL_LIBDIR=lib.")
  endif()
  list(APPEND binaries ${found})
endforeach()
execute_process(COMMAND strip --strip-debug --remove-section=.comment --enable-deterministic-archives ${binaries}
                COMMAND_ERROR_IS_FATAL ANY)

string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(compressed ${CPACK_TEMPORARY_DIRECTORY}/run/usr/share/man/man1/hearth.1)
foreach(folder IN ITEMS run/usr/share/doc/hearth dev/usr/share/doc/libhearth-dev)
  set(changelog ${CPACK_TEMPORARY_DIRECTORY}/${folder}/changelog)
  file(WRITE ${changelog} "hearth (${CPACK_DEBIAN_PACKAGE_VERSION}) bookworm; urgency=medium\n\n"
                          "  * /usr/share/doc/hearth/CHANGELOG.md says what has changed.\n\n"
                          " -- ${CPACK_PACKAGE_CONTACT}  ${today}\n")
  list(APPEND compressed ${changelog})
endforeach()
execute_process(COMMAND gzip -9n ${compressed} COMMAND_ERROR_IS_FATAL ANY)
