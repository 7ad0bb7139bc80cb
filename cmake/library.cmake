# Builds libcapuchin.so and libcapuchin.a from the rooms, and installs them.
#
# An archive holds a single object: all rooms linked together, with every symbol that is not public
# made local. A hidden name would still be global inside a static archive.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

option(CAPUCHIN_CUDA_INSIDE "Put the cuda device into libcapuchin.a, instead of opening the plug-in" OFF)
if(CAPUCHIN_CUDA_INSIDE AND NOT CAPUCHIN_HAVE_CUDA)
    message(FATAL_ERROR "CAPUCHIN_CUDA_INSIDE needs a CUDA toolkit")
endif()

set(room_objects)
foreach(room IN LISTS capuchin_rooms)
    list(APPEND room_objects $<TARGET_OBJECTS:capuchin_${room}>)
endforeach()

# See capuchin/version.h: until 1.0 every minor version may change the interface.
set(capuchin_soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(capuchin_soversion 0.${PROJECT_VERSION_MINOR})
endif()

add_library(capuchin SHARED ${room_objects})
add_library(capuchin::capuchin ALIAS capuchin)
target_include_directories(capuchin PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(capuchin PRIVATE PkgConfig::JANSSON Threads::Threads m ${CMAKE_DL_LIBS})
target_link_options(capuchin PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/capuchin.map)
set_target_properties(capuchin PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${capuchin_soversion} LINKER_LANGUAGE C
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/capuchin.map)
if(TARGET capuchin_cuda_plugin)
    add_dependencies(capuchin capuchin_cuda_plugin) # looked for when a context is created
endif()

# capuchin_archive(NAME FILE INSIDE [INTERNAL...]): the target NAME_archive builds the archive, with the cuda device
# inside if INSIDE; programs of this project link NAME, as a user would link the archive. These internal functions
# stay global.
function(capuchin_archive name file inside)
    set(objects ${room_objects})
    set(libraries ${CMAKE_DL_LIBS})
    list(TRANSFORM ARGN PREPEND --globalize-symbol= OUTPUT_VARIABLE globals)
    get_filename_component(folder ${file} DIRECTORY)
    if(inside)
        list(TRANSFORM objects REPLACE "^.*capuchin_device>$"
             "$<FILTER:$<TARGET_OBJECTS:capuchin_device>,EXCLUDE,/cuda_open.c>;$<TARGET_OBJECTS:capuchin_device_cuda>")
        set(libraries ${CAPUCHIN_CUDART})
    endif()
    add_custom_command(OUTPUT ${file}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
        COMMAND ${CMAKE_LINKER} -r -o ${name}.o ${objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${name}.o
        COMMAND ${CMAKE_OBJCOPY} ${globals} ${name}.o
        COMMAND ${CMAKE_COMMAND} -E rm -f ${file}
        COMMAND ${CMAKE_AR} rcs ${file} ${name}.o
        DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM
        COMMENT "Linking ${file}")
    add_custom_target(${name}_archive ALL DEPENDS ${file})
    add_library(${name} INTERFACE)
    add_dependencies(${name} ${name}_archive)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${name} INTERFACE ${file} PkgConfig::JANSSON m Threads::Threads ${libraries})
endfunction()

set(archive ${PROJECT_BINARY_DIR}/lib/libcapuchin.a)
capuchin_archive(capuchin_static ${archive} ${CAPUCHIN_CUDA_INSIDE})
add_library(capuchin::capuchin_static ALIAS capuchin_static)
if(TARGET capuchin_cuda_plugin)
    add_dependencies(capuchin_static capuchin_cuda_plugin)
endif()

# A project that takes this one in with add_subdirectory installs it only if it says so.
option(CAPUCHIN_INSTALL "Install the library" ${PROJECT_IS_TOP_LEVEL})
if(NOT CAPUCHIN_INSTALL)
    return()
endif()

# The package finds its prefix from where it lies, so that an installed tree can be moved.
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/capuchin)
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
set(archive_libraries ${CMAKE_DL_LIBS})
if(CAPUCHIN_CUDA_INSIDE)
    set(archive_libraries ${CAPUCHIN_CUDART})
endif()
set(archive_flags)
foreach(library IN LISTS archive_libraries)
    if(IS_ABSOLUTE ${library})
        string(APPEND archive_flags " ${library}")
    else()
        string(APPEND archive_flags " -l${library}")
    endif()
endforeach()
configure_file(capuchin.pc.in capuchin.pc @ONLY)
configure_package_config_file(cmake/capuchinConfig.cmake.in capuchinConfig.cmake
    INSTALL_DESTINATION ${package_folder}
    PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(capuchinConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS capuchin EXPORT capuchinTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET capuchin_cuda_plugin)
    install(TARGETS capuchin_cuda_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/capuchin DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} PATTERN parallel.h EXCLUDE
        PATTERN private.h EXCLUDE)
install(EXPORT capuchinTargets NAMESPACE capuchin:: DESTINATION ${package_folder})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/capuchinConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/capuchinConfigVersion.cmake DESTINATION ${package_folder})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/capuchin.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
