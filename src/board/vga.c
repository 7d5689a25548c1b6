/* SPDX-License-Identifier: Apache-2.0
 *
 * The VGA's registers at 0x3B4, 0x3C0-0x3CF, 0x3D4 and 0x3DA, set to 80 by 25 text (mode 3). They can be written and
 * read back; only the start of the screen, its size and the cursor have an effect. Retrace follows the time. IBM's VGA
 * technical reference.
 */
#include "base/base.h"
#include "board/state.h"

enum {
  CRTC_COLUMNS = 0x01,
  CRTC_OVERFLOW = 0x07,
  CRTC_ROW_HEIGHT = 0x09,
  CRTC_CURSOR_START = 0x0A,
  CRTC_CURSOR_END = 0x0B,
  CRTC_START_HIGH = 0x0C,
  CRTC_CURSOR_HIGH = 0x0E,
  CRTC_PROTECT = 0x11,
  CRTC_LINES = 0x12,
  CRTC_LAST = 0x18,
};

#define CURSOR_OFF 0x20
#define LINE_TIME UINT64_C(31778) /* 449 lines of 25.175 MHz / 800: 70 frames a second */
#define LINES 449u
#define LINES_SHOWN 400u
#define RETRACE_START 412u
#define RETRACE_END 414u
#define LINE_SHOWN UINT64_C(25422) /* 640 of 800 dots */
#define STATUS_BLANK 0x01
#define STATUS_RETRACE 0x08

static const uint8_t mode3_crtc[CRTC_LAST + 1] = {0x5F, 0x4F, 0x50, 0x82, 0x55, 0x81, 0xBF, 0x1F, 0x00,
                                                  0x4F, 0x0D, 0x0E, 0x00, 0x00, 0x00, 0x00, 0x9C, 0x8E,
                                                  0x8F, 0x28, 0x1F, 0x96, 0xB9, 0xA3, 0xFF};
static const uint8_t mode3_sequencer[5] = {0x03, 0x00, 0x03, 0x00, 0x02};
static const uint8_t mode3_graphics[9] = {0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x0E, 0x00, 0xFF};
static const uint8_t mode3_attribute[21] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x14, 0x07, 0x38, 0x39, 0x3A,
                                            0x3B, 0x3C, 0x3D, 0x3E, 0x3F, 0x0C, 0x00, 0x0F, 0x08, 0x00};

struct vga {
  uint8_t crtc_index, crtc[32];
  uint8_t sequencer_index, sequencer[8];
  uint8_t graphics_index, graphics[16];
  uint8_t attribute_index, attribute[32];
  bool is_attribute_data; /* the flip-flop of 0x3C0 */
  uint8_t misc, feature;
  uint8_t dac[256 * 3], dac_mask;
  uint16_t dac_read, dac_write; /* byte that is read or written next */
  bool dac_reads;               /* 0x3C7 was written last */
};

static struct vga *vga_of(const struct board *board)
{
  return device_state(board, DEVICE_NUMBER_vga);
}

/* ---- the screen ---- */

static uint32_t vga_pair(const struct vga *vga, unsigned index)
{
  return (uint32_t)(vga->crtc[index] << 8 | vga->crtc[index + 1]);
}

struct board_screen board_screen(const struct board *board)
{
  const struct vga *vga = vga_of(board);
  const uint8_t *crtc = vga->crtc;
  unsigned lines = (crtc[CRTC_LINES] | (crtc[CRTC_OVERFLOW] & 0x02u) << 7 | (crtc[CRTC_OVERFLOW] & 0x40u) << 3) + 1;
  unsigned height = (crtc[CRTC_ROW_HEIGHT] & 0x1Fu) + 1;
  bool is_visible = (crtc[CRTC_CURSOR_START] & 0x1F) <= (crtc[CRTC_CURSOR_END] & 0x1F);

  return (struct board_screen){
    .start = vga_pair(vga, CRTC_START_HIGH),
    .cursor = vga_pair(vga, CRTC_CURSOR_HIGH),
    .has_cursor = !(crtc[CRTC_CURSOR_START] & CURSOR_OFF) && is_visible,
    .columns = crtc[CRTC_COLUMNS] + 1u,
    .rows = lines / height ? lines / height : 1,
  };
}

void board_set_cursor(struct board *board, uint32_t cell)
{
  vga_of(board)->crtc[CRTC_CURSOR_HIGH] = (uint8_t)(cell >> 8);
  vga_of(board)->crtc[CRTC_CURSOR_HIGH + 1] = (uint8_t)cell;
}

void board_set_cursor_shape(struct board *board, uint8_t start, uint8_t end)
{
  vga_of(board)->crtc[CRTC_CURSOR_START] = start & 0x3F;
  vga_of(board)->crtc[CRTC_CURSOR_END] = end & 0x7F;
}

/* Input status 1. Reading it also sets 0x3C0 back to taking an index. */
static uint8_t vga_status(struct board *board)
{
  uint64_t now = board_now(board), line = now / LINE_TIME % LINES;
  uint8_t status = 0;

  vga_of(board)->is_attribute_data = false;
  if (line >= LINES_SHOWN || now % LINE_TIME >= LINE_SHOWN)
    status |= STATUS_BLANK;
  if (line >= RETRACE_START && line < RETRACE_END)
    status |= STATUS_RETRACE;
  return status;
}

/* ---- registers ---- */

/* Bit 7 of register 0x11 locks registers 0 to 7, except for the split line's bit. */
static void vga_write_crtc(struct vga *vga, uint8_t value)
{
  uint8_t *place = &vga->crtc[vga->crtc_index];

  if (vga->crtc_index > CRTC_LAST)
    return;
  if (!(vga->crtc[CRTC_PROTECT] & 0x80) || vga->crtc_index > CRTC_OVERFLOW)
    *place = value;
  else if (vga->crtc_index == CRTC_OVERFLOW)
    *place = (uint8_t)((*place & ~0x10) | (value & 0x10));
}

static void vga_write_attribute(struct vga *vga, uint8_t value)
{
  if (!vga->is_attribute_data)
    vga->attribute_index = value & 0x3F; /* bit 5: the palette is in use */
  else
    vga->attribute[vga->attribute_index & 0x1F] = value;
  vga->is_attribute_data = !vga->is_attribute_data;
}

static void vga_write_dac(struct vga *vga, uint8_t value)
{
  vga->dac[vga->dac_write] = value & 0x3F;
  vga->dac_write = (uint16_t)((vga->dac_write + 1) % sizeof(vga->dac));
}

static uint8_t vga_read_dac(struct vga *vga)
{
  uint8_t value = vga->dac[vga->dac_read];

  vga->dac_read = (uint16_t)((vga->dac_read + 1) % sizeof(vga->dac));
  return value;
}

static uint32_t vga_in(struct board *board, uint16_t port, unsigned size)
{
  struct vga *vga = vga_of(board);

  (void)size;
  switch (port) {
  case 0x3C0:
    return vga->attribute_index;
  case 0x3C1:
    return vga->attribute[vga->attribute_index & 0x1F];
  case 0x3C2:
    return 0x10; /* a monitor is there */
  case 0x3C4:
    return vga->sequencer_index;
  case 0x3C5:
    return vga->sequencer[vga->sequencer_index];
  case 0x3C6:
    return vga->dac_mask;
  case 0x3C7:
    return vga->dac_reads ? 3 : 0;
  case 0x3C8:
    return (uint8_t)(vga->dac_write / 3);
  case 0x3C9:
    return vga_read_dac(vga);
  case 0x3CA:
    return vga->feature;
  case 0x3CC:
    return vga->misc;
  case 0x3CE:
    return vga->graphics_index;
  case 0x3CF:
    return vga->graphics[vga->graphics_index];
  case 0x3B4:
  case 0x3D4:
    return vga->crtc_index;
  case 0x3B5:
  case 0x3D5:
    return vga->crtc[vga->crtc_index];
  case 0x3BA:
  case 0x3DA:
    return vga_status(board);
  default:
    return 0xFF;
  }
}

static void vga_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  struct vga *vga = vga_of(board);
  uint8_t byte = (uint8_t)value;

  (void)size;
  switch (port) {
  case 0x3C0:
    vga_write_attribute(vga, byte);
    break;
  case 0x3C2:
    vga->misc = byte;
    break;
  case 0x3C4:
    vga->sequencer_index = byte & 7;
    break;
  case 0x3C5:
    vga->sequencer[vga->sequencer_index] = byte;
    break;
  case 0x3C6:
    vga->dac_mask = byte;
    break;
  case 0x3C7:
    vga->dac_read = (uint16_t)(byte * 3);
    vga->dac_reads = true;
    break;
  case 0x3C8:
    vga->dac_write = (uint16_t)(byte * 3);
    vga->dac_reads = false;
    break;
  case 0x3C9:
    vga_write_dac(vga, byte);
    break;
  case 0x3CE:
    vga->graphics_index = byte & 15;
    break;
  case 0x3CF:
    vga->graphics[vga->graphics_index] = byte;
    break;
  case 0x3B4:
  case 0x3D4:
    vga->crtc_index = byte & 31;
    break;
  case 0x3B5:
  case 0x3D5:
    vga_write_crtc(vga, byte);
    break;
  case 0x3BA:
  case 0x3DA:
    vga->feature = byte;
    break;
  default:
    break;
  }
}

static void vga_reset(struct board *board)
{
  struct vga *vga = vga_of(board);

  *vga = (struct vga){.misc = 0x67, .dac_mask = 0xFF, .attribute_index = 0x20};
  memcpy(vga->crtc, mode3_crtc, sizeof(mode3_crtc));
  memcpy(vga->sequencer, mode3_sequencer, sizeof(mode3_sequencer));
  memcpy(vga->graphics, mode3_graphics, sizeof(mode3_graphics));
  memcpy(vga->attribute, mode3_attribute, sizeof(mode3_attribute));
}

/* ---- saving ---- */

static void vga_archive(struct archive *archive, struct board *board)
{
  struct vga *vga = vga_of(board);

  archive_most(archive, &vga->crtc_index, sizeof(vga->crtc) - 1);
  archive_array(archive, vga->crtc);
  archive_most(archive, &vga->sequencer_index, sizeof(vga->sequencer) - 1);
  archive_array(archive, vga->sequencer);
  archive_most(archive, &vga->graphics_index, sizeof(vga->graphics) - 1);
  archive_array(archive, vga->graphics);
  archive_value(archive, &vga->attribute_index);
  archive_array(archive, vga->attribute);
  archive_flag(archive, &vga->is_attribute_data);
  archive_value(archive, &vga->misc);
  archive_value(archive, &vga->feature);
  archive_array(archive, vga->dac);
  archive_value(archive, &vga->dac_mask);
  archive_most(archive, &vga->dac_read, sizeof(vga->dac) - 1);
  archive_most(archive, &vga->dac_write, sizeof(vga->dac) - 1);
  archive_flag(archive, &vga->dac_reads);
}

static const struct port_range vga_ports[] = {
  {0x3B4, 0x3B5, PORT_QUIET, vga_in, vga_out}, {0x3BA, 0x3BA, PORT_QUIET, vga_in, vga_out},
  {0x3C0, 0x3CF, PORT_QUIET, vga_in, vga_out}, {0x3D4, 0x3D5, PORT_QUIET, vga_in, vga_out},
  {0x3DA, 0x3DA, PORT_QUIET, vga_in, vga_out}, {0},
};

const struct device device_vga = {
  DEVICE_STATE(vga),
  .ports = vga_ports,
  .reset = vga_reset,
  .archive = vga_archive,
};
