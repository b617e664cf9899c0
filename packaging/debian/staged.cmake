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

# The manual page has what each command says of its options.
set(manual ${CPACK_TEMPORARY_DIRECTORY}/run/usr/share/man/man1/hearth.1)
function(describe)
  execute_process(COMMAND ${CPACK_TEMPORARY_DIRECTORY}/run/usr/bin/hearth ${ARGN} --help
                  OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
  if(ARGN)
    list(JOIN ARGN " " command)
    string(REGEX REPLACE "([\\\\-])" "\\\\\\1" text "${help}")
    string(REGEX REPLACE "\n([.'])" "\n\\\\&\\1" text "${text}")
    file(APPEND ${manual}.options ".SS hearth ${command}\n.nf\n${text}.fi\n")
  endif()
  string(REGEX MATCH "\nSubcommands:\n(  [^\n]*\n)+" below "${help}")
  string(REGEX MATCHALL "\n  [a-z-]+ " names "${below}")
  foreach(name IN LISTS names)
    string(STRIP "${name}" name)
    describe(${ARGN} ${name})
  endforeach()
endfunction()
file(WRITE ${manual}.options ".SH OPTIONS\n")
describe()
file(READ ${manual}.options options)
file(READ ${manual} page)
string(REPLACE ".SH EXIT STATUS\n" "${options}.SH EXIT STATUS\n" page "${page}")
file(WRITE ${manual} "${page}")
file(REMOVE ${manual}.options)

string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(compressed ${manual})
foreach(folder IN ITEMS run/usr/share/doc/hearth dev/usr/share/doc/libhearth-dev)
  set(changelog ${CPACK_TEMPORARY_DIRECTORY}/${folder}/changelog)
  file(WRITE ${changelog} "hearth (${CPACK_DEBIAN_PACKAGE_VERSION}) bookworm; urgency=medium\n\n"
                          "  * /usr/share/doc/hearth/CHANGELOG.md says what has changed.\n\n"
                          " -- ${CPACK_PACKAGE_CONTACT}  ${today}\n")
  list(APPEND compressed ${changelog})
endforeach()
execute_process(COMMAND gzip -9n ${compressed} COMMAND_ERROR_IS_FATAL ANY)
