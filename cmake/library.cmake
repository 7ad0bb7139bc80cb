# Builds libcapuchin.so and libcapuchin.a from the rooms, and installs them.
#
# The archive holds a single object: all rooms linked together, with every symbol that is not public
# made local. A hidden name would still be global inside a static archive.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(room_objects)
foreach(room IN LISTS capuchin_rooms)
    list(APPEND room_objects $<TARGET_OBJECTS:capuchin_${room}>)
endforeach()

add_library(capuchin SHARED ${room_objects})
add_library(capuchin::capuchin ALIAS capuchin)
target_include_directories(capuchin PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(capuchin PRIVATE PkgConfig::JANSSON Threads::Threads m ${CAPUCHIN_CUDART})
target_link_options(capuchin PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/capuchin.map)
set_target_properties(capuchin PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/capuchin.map)

set(archive ${PROJECT_BINARY_DIR}/lib/libcapuchin.a)
add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/lib
    COMMAND ${CMAKE_LINKER} -r -o capuchin.o ${room_objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden capuchin.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} capuchin.o
    DEPENDS ${room_objects} COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Linking libcapuchin.a")
add_custom_target(capuchin_archive ALL DEPENDS ${archive})

# For targets of this project that link the archive as a user would.
add_library(capuchin_static INTERFACE)
add_dependencies(capuchin_static capuchin_archive)
target_include_directories(capuchin_static INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(capuchin_static INTERFACE ${archive} PkgConfig::JANSSON m Threads::Threads
                                                ${CAPUCHIN_CUDART})
add_library(capuchin::capuchin_static ALIAS capuchin_static)

# A project that takes this one in with add_subdirectory installs it only if it says so.
option(CAPUCHIN_INSTALL "Install the library" ${PROJECT_IS_TOP_LEVEL})
if(NOT CAPUCHIN_INSTALL)
    return()
endif()

# The package finds its prefix from where it lies, so that an installed tree can be moved.
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/capuchin)
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
set(cudart_flags)
foreach(library IN LISTS CAPUCHIN_CUDART)
    if(IS_ABSOLUTE ${library})
        string(APPEND cudart_flags " ${library}")
    else()
        string(APPEND cudart_flags " -l${library}")
    endif()
endforeach()
configure_file(capuchin.pc.in capuchin.pc @ONLY)
configure_package_config_file(cmake/capuchinConfig.cmake.in capuchinConfig.cmake
    INSTALL_DESTINATION ${package_folder}
    PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(capuchinConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS capuchin EXPORT capuchinTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/capuchin DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT capuchinTargets NAMESPACE capuchin:: DESTINATION ${package_folder})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/capuchinConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/capuchinConfigVersion.cmake DESTINATION ${package_folder})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/capuchin.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
