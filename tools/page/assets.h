/*
 * What every page contains: our style and script from tools/page, and the library that draws
 * curves. cmake/embed.cmake makes the constants from the files. Without the library its constants
 * are empty, and there are no pages.
 */
#ifndef CAPU_TOOLS_ASSETS_H
#define CAPU_TOOLS_ASSETS_H

extern const char asset_style[];
extern const char asset_script[];
extern const char asset_dygraphs_style[];
extern const char asset_dygraphs_script[];
extern const char asset_dygraphs_licence[];

#endif
