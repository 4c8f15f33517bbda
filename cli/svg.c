/* SPDX-License-Identifier: Apache-2.0
 *
 * Two plots as SVG, which is text: the ladder as bars, and the roofline.
 *
 *     v0_global  |###            |       flops |      ________ peak
 *     v4_reg     |########       |             |    /  o
 *     k10_warp   |############   |             |  /  o
 *                               peak           |/___________ flops a byte
 *
 * Colours are named once, in the style below, for a light and for a dark background.
 */
#include "cli.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 860, TOP = 78, RIGHT = 24 };

typedef struct box {
    double x, y, width, height;
} box;

static const char style_text[] = "<style>\n"
                                 "  text { font: 12px system-ui, sans-serif; fill: #1f2328 }\n"
                                 "  .title { font-size: 16px; font-weight: 600 }\n"
                                 "  .quiet { fill: #59636e }\n"
                                 "  .ground { fill: #ffffff }\n"
                                 "  .grid { stroke: #d1d9e0; stroke-width: 1 }\n"
                                 "  .roof { stroke: #1f2328; stroke-width: 1.5; fill: none }\n"
                                 "  .other { stroke-dasharray: 5 4 }\n"
                                 "  .s0 { fill: #0969da; stroke: #0969da }\n"
                                 "  .s1 { fill: #bc4c00; stroke: #bc4c00 }\n"
                                 "  .s2 { fill: #1a7f37; stroke: #1a7f37 }\n"
                                 "  .s3 { fill: #8250df; stroke: #8250df }\n"
                                 "  @media (prefers-color-scheme: dark) {\n"
                                 "    text { fill: #f0f6fc }\n"
                                 "    .quiet { fill: #9198a1 }\n"
                                 "    .ground { fill: #0d1117 }\n"
                                 "    .grid { stroke: #3d444d }\n"
                                 "    .roof { stroke: #f0f6fc }\n"
                                 "    .s0 { fill: #4493f8; stroke: #4493f8 }\n"
                                 "    .s1 { fill: #f0883e; stroke: #f0883e }\n"
                                 "    .s2 { fill: #3fb950; stroke: #3fb950 }\n"
                                 "    .s3 { fill: #ab7df8; stroke: #ab7df8 }\n"
                                 "  }\n"
                                 "</style>\n";

/* --------------------------------------------------------------------------------- the elements */
static void put_escaped(FILE *file, const char *text)
{
    for (int bytes; *text; text += bytes ? bytes : 1) {
        bytes = cli_letter_bytes(text);
        if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '&')
            fputs("&amp;", file);
        else
            fprintf(file, "%.*s", bytes ? bytes : 3, bytes ? text : "\xef\xbf\xbd");
    }
}

static void put_text(FILE *file, double x, double y, const char *anchor, const char *class,
                     const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor,
            class);
    put_escaped(file, text);
    fputs("</text>\n", file);
}

static void put_line(FILE *file, const char *class, double x0, double y0, double x1, double y1)
{
    fprintf(file, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class,
            x0, y0, x1, y1);
}

static void put_mark(FILE *file, double x, double y, int series)
{
    fprintf(file, "<circle class=\"s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"%s/>\n", series % 4, x, y,
            series > 0 ? " fill-opacity=\"0.25\"" : "");
}

static FILE *start(const cli_plot *plot, double height)
{
    FILE *file = cli_temporary_open(plot->path);
    if (!file)
        return NULL;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
            "height=\"%.0f\" role=\"img\">\n<title>",
            WIDTH, height, WIDTH, height);
    put_escaped(file, plot->title);
    fprintf(file, "</title>\n%s<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n",
            style_text);
    put_text(file, 16, 26, "start", "title", plot->title);
    put_text(file, 16, 46, "start", "quiet", plot->subtitle);
    return file;
}

static int finish(const cli_plot *plot, FILE *file)
{
    fputs("</svg>\n", file);
    return cli_temporary_close(file, plot->path);
}

/* 1, 2 and 5 times the powers of ten; the next one after x. */
static double next_tick(double x)
{
    double power = pow(10, floor(log10(x * 1.0001)));
    double digit = x / power;
    return digit < 1.5 ? 2 * power : digit < 3 ? 5 * power : 10 * power;
}

/* --------------------------------------------------------------------------------------- bars */
enum { NAMES = 160, NOTES = 190, ROW = 24 };

static void put_level(FILE *file, const cli_plot *plot, const char *name, double value, double most,
                      double bottom, const char *class, double y)
{
    char text[2 * CLI_NAME];
    double x = NAMES + value / most * (WIDTH - NAMES - NOTES);
    if (value <= 0)
        return;
    snprintf(text, sizeof text, "%s %.1f %s", name, value, plot->unit);
    put_line(file, class, x, y + 4, x, bottom);
    put_text(file, x, y, x > WIDTH / 2 ? "end" : "start", "quiet", text);
}

int cli_plot_bars(const cli_plot *plot, const cli_bar *bars, int count)
{
    double most = fmax(plot->peak, plot->peer), bottom = TOP + 18 + count * ROW;
    for (int i = 0; i < count; i++)
        most = fmax(most, bars[i].value);
    FILE *file = start(plot, bottom + 44);
    if (!file)
        return CLI_FAILED;
    double scale = (WIDTH - NAMES - NOTES) / most;
    double step = next_tick(most / 8);
    for (double tick = 0; tick <= most; tick += step) {
        char text[CLI_NAME];
        snprintf(text, sizeof text, "%g", tick);
        put_line(file, "grid", NAMES + tick * scale, TOP + 14, NAMES + tick * scale, bottom);
        put_text(file, NAMES + tick * scale, bottom + 16, "middle", "quiet", text);
    }
    put_text(file, NAMES + most * scale / 2, bottom + 34, "middle", "quiet", plot->unit);
    for (int i = 0; i < count; i++) {
        double y = TOP + 18 + i * ROW;
        put_text(file, NAMES - 8, y + 14, "end", "", bars[i].name);
        fprintf(file,
                "<rect class=\"s0\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\"/>\n",
                NAMES, y + 2, bars[i].value * scale, ROW - 6);
        put_text(file, WIDTH - RIGHT, y + 14, "end", "quiet", bars[i].note);
    }
    put_level(file, plot, "peak", plot->peak, most, bottom, "roof", TOP + 8);
    put_level(file, plot, plot->series[1], plot->peer, most, bottom, "roof other", TOP - 8);
    return finish(plot, file);
}

/* ------------------------------------------------------------------------------------ roofline */
/* Logarithmic axes over a box. */
typedef struct axes {
    box area;
    double x0, x1, y0, y1;
} axes;

enum { LEFT = 76, HEIGHT = 560, BOTTOM = 64, BOXES = 512 };

static double x_of(const axes *a, double x)
{
    return a->area.x + a->area.width * log(x / a->x0) / log(a->x1 / a->x0);
}

static double y_of(const axes *a, double y)
{
    return a->area.y + a->area.height * (1 - log(y / a->y0) / log(a->y1 / a->y0));
}

static axes fit_axes(const cli_plot *plot, const cli_point *points, int count)
{
    double knee = plot->bandwidth > 0 ? plot->peak / plot->bandwidth : 1;
    axes a = {{LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM}, knee, knee, plot->peak, 0};
    for (int i = 0; i < count; i++) {
        a.x0 = fmin(a.x0, points[i].x), a.x1 = fmax(a.x1, points[i].x);
        a.y0 = fmin(a.y0, points[i].y), a.y1 = fmax(a.y1, points[i].y);
    }
    a.x0 /= 2, a.x1 *= 3;
    a.y0 /= 2, a.y1 = fmax(a.y1, plot->peak) * 1.6;
    return a;
}

static void put_axes(FILE *file, const axes *a, const char *unit)
{
    const box *area = &a->area;
    char text[CLI_NAME];
    int is_wide_x = a->x1 / a->x0 > 3000, is_wide_y = a->y1 / a->y0 > 3000;
    for (double tick = next_tick(a->x0); tick < a->x1; tick = next_tick(tick)) {
        snprintf(text, sizeof text, "%g", tick);
        put_line(file, "grid", x_of(a, tick), area->y, x_of(a, tick), area->y + area->height);
        if (!is_wide_x || fabs(log10(tick) - rint(log10(tick))) < 1e-6)
            put_text(file, x_of(a, tick), area->y + area->height + 18, "middle", "quiet", text);
    }
    for (double tick = next_tick(a->y0); tick < a->y1; tick = next_tick(tick)) {
        snprintf(text, sizeof text, "%g", tick);
        put_line(file, "grid", area->x, y_of(a, tick), area->x + area->width, y_of(a, tick));
        if (!is_wide_y || fabs(log10(tick) - rint(log10(tick))) < 1e-6)
            put_text(file, area->x - 8, y_of(a, tick) + 4, "end", "quiet", text);
    }
    put_text(file, area->x + area->width / 2, HEIGHT - 18, "middle", "quiet",
             "FLOP for each byte of A, B and C, moved once");
    fprintf(file,
            "<text class=\"quiet\" text-anchor=\"middle\" transform=\"translate(20 %.1f) "
            "rotate(-90)\">%s</text>\n",
            area->y + area->height / 2, unit);
}

static void put_roof(FILE *file, const axes *a, const cli_plot *plot)
{
    char text[2 * CLI_NAME];
    double knee = plot->bandwidth > 0 ? plot->peak / plot->bandwidth : a->x0;
    double low = fmax(a->x0, a->y0 / fmax(plot->bandwidth, 1e-9));
    snprintf(text, sizeof text, "peak %.4g %s", plot->peak, plot->unit);
    put_line(file, "roof", x_of(a, knee), y_of(a, plot->peak), x_of(a, a->x1), y_of(a, plot->peak));
    put_text(file, a->area.x + a->area.width, y_of(a, plot->peak) - 7, "end", "", text);
    if (plot->bandwidth <= 0)
        return;
    put_line(file, "roof", x_of(a, low), y_of(a, low * plot->bandwidth), x_of(a, knee),
             y_of(a, plot->peak));
    snprintf(text, sizeof text, "memory %.4g GB/s",
             plot->bandwidth * (strcmp(plot->unit, "TFLOP/s") == 0 ? 1e3 : 1));
    put_text(file, x_of(a, knee) - 10, y_of(a, plot->peak) - 7, "end", "", text);
}

static int overlaps(const box *boxes, int count, box one)
{
    for (int i = 0; i < count; i++) {
        const box *b = &boxes[i];
        if (one.x < b->x + b->width && b->x < one.x + one.width && one.y < b->y + b->height &&
            b->y < one.y + one.height)
            return 1;
    }
    return 0;
}

/* Names a point beside it where there is room; else the pointer's tooltip has the name. */
static void put_name(FILE *file, const axes *a, const char *name, double x, double y, box *boxes,
                     int *count)
{
    static const double ups[] = {0, -10, 10};
    double width = 6.4 * (double)strlen(name);
    for (int i = 0; i < 6 && *count < BOXES; i++) {
        int is_left = i % 2;
        box one = {is_left ? x - 8 - width : x + 8, y + ups[i / 2] - 6, width, 12};
        if (one.x < a->area.x || one.x + width > WIDTH - 4 || overlaps(boxes, *count, one))
            continue;
        boxes[(*count)++] = one;
        put_text(file, is_left ? x - 8 : x + 8, y + ups[i / 2] + 4, is_left ? "end" : "start", "",
                 name);
        return;
    }
}

static void put_points(FILE *file, const axes *a, const cli_plot *plot, const cli_point *points,
                       int count)
{
    double knee = plot->bandwidth > 0 ? plot->peak / plot->bandwidth : a->x0;
    box roof = {x_of(a, knee) - 140, y_of(a, plot->peak) - 18, 130, 14};
    box peak = {a->area.x + a->area.width - 150, y_of(a, plot->peak) - 18, 150, 14};
    box boxes[BOXES] = {roof, peak};
    int box_count = 2;
    for (int i = 0; i < count && box_count < BOXES / 2; i++) {
        box mark = {x_of(a, points[i].x) - 4, y_of(a, points[i].y) - 4, 8, 8};
        boxes[box_count++] = mark;
    }
    for (int i = count - 1; i >= 0; i--) {
        double x = x_of(a, points[i].x), y = y_of(a, points[i].y);
        fputs("<g><title>", file);
        put_escaped(file, points[i].name);
        fprintf(file, ": %.4g %s</title>\n", points[i].y, plot->unit);
        put_mark(file, x, y, points[i].series);
        fputs("</g>\n", file);
    }
    for (int i = 0; i < count; i++) {
        if (points[i].series == 0)
            put_name(file, a, points[i].name, x_of(a, points[i].x), y_of(a, points[i].y), boxes,
                     &box_count);
    }
}

int cli_plot_roofline(const cli_plot *plot, const cli_point *points, int count)
{
    axes a = fit_axes(plot, points, count);
    FILE *file = start(plot, HEIGHT);
    if (!file)
        return CLI_FAILED;
    put_axes(file, &a, plot->unit);
    put_roof(file, &a, plot);
    put_points(file, &a, plot, points, count);
    double x = 16;
    for (int i = 0; i < CLI_LIST && plot->series[i]; i++) {
        put_mark(file, x + 4, 62, i);
        put_text(file, x + 14, 66, "start", "quiet", plot->series[i]);
        x += 30 + 7 * (double)strlen(plot->series[i]);
    }
    return finish(plot, file);
}
