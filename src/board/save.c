/* SPDX-License-Identifier: Apache-2.0
 *
 * The board's state to and from bytes: one walk for each device. The bytes may be forged: whatever is an index, a size
 * or a divisor is checked; what the guest could write into a register itself is not. Times may be anything: a device
 * whose time has come is late, and one whose time has not waits.
 */
#include "board/save.h"

#define ISA_LINES 16u
#define RTC_SECONDS_MOST INT64_C(253402300799) /* as rtc.c: years 0 to 9999 */
#define RTC_SECONDS_LEAST INT64_C(-62167219200)

/* ---- interrupts ---- */

static void chip_archive(struct archive *archive, struct pic_chip *chip)
{
  bool *const flags[] = {&chip->is_ready,    &chip->is_single,        &chip->needs_icw4,
                         &chip->is_auto_eoi, &chip->reads_isr,        &chip->rotates_on_auto_eoi,
                         &chip->polls,       &chip->has_special_mask, &chip->has_special_nesting};
  archive_value(archive, &chip->irr);
  archive_value(archive, &chip->isr);
  archive_value(archive, &chip->imr);
  archive_value(archive, &chip->lines);
  archive_value(archive, &chip->level);
  archive_value(archive, &chip->base);
  archive_most(archive, &chip->lowest, 7);
  archive_most(archive, &chip->step, 4);
  for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
    archive_flag(archive, flags[i]);
}

static void ioapic_archive(struct archive *archive, struct ioapic *ioapic)
{
  archive_value(archive, &ioapic->index);
  archive_value(archive, &ioapic->id);
  archive_most(archive, &ioapic->lines, (UINT32_C(1) << IOAPIC_PINS) - 1);
  archive_array(archive, ioapic->entry);
}

static void lapic_archive(struct archive *archive, struct lapic *lapic)
{
  uint32_t *const registers[] = {&lapic->id,  &lapic->tpr,    &lapic->ldr, &lapic->dfr,     &lapic->svr,
                                 &lapic->esr, &lapic->errors, &lapic->icr, &lapic->icr_high};
  archive_value(archive, &lapic->base);
  for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
    archive_value(archive, registers[i]);
  archive_array(archive, lapic->lvt);
  archive_array(archive, lapic->irr);
  archive_array(archive, lapic->isr);
  archive_array(archive, lapic->tmr);
  archive_flag(archive, &lapic->lint[0]);
  archive_flag(archive, &lapic->lint[1]);
  archive_value(archive, &lapic->timer.initial);
  archive_value(archive, &lapic->timer.divide);
  archive_value(archive, &lapic->timer.count);
  archive_value(archive, &lapic->timer.since);
  archive_flag(archive, &lapic->timer.is_counting);
  archive_value(archive, &lapic->timer.tsc_deadline);
  archive_value(archive, &lapic->timer.tsc_due);
}

/* ---- timers ---- */

static void channel_archive(struct archive *archive, struct pit_channel *channel)
{
  bool *const flags[] = {&channel->is_bcd,      &channel->gate,       &channel->has_count, &channel->is_started,
                         &channel->writes_high, &channel->reads_high, &channel->is_paused, &channel->has_status};
  archive_most(archive, &channel->mode, 5);
  archive_most(archive, &channel->access, 3);
  for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
    archive_flag(archive, flags[i]);
  archive_value(archive, &channel->low);
  archive_most(archive, &channel->count, 65536);
  archive_most(archive, &channel->next_count, 65536);
  archive_value(archive, &channel->next_start);
  archive_value(archive, &channel->start);
  archive_value(archive, &channel->paused);
  archive_most(archive, &channel->latched, 2);
  archive_value(archive, &channel->latch);
  archive_value(archive, &channel->status);
  if (channel->count == 0)
    archive_refuse(archive);
}

static void pit_archive(struct archive *archive, struct pit *pit)
{
  for (unsigned i = 0; i < 3; i++)
    channel_archive(archive, &pit->channel[i]);
  archive_value(archive, &pit->seen);
}

static void rtc_archive(struct archive *archive, struct rtc *rtc)
{
  archive_most(archive, &rtc->index, CMOS_SIZE - 1);
  archive_flag(archive, &rtc->nmi_is_masked);
  archive_array(archive, rtc->cmos);
  archive_value(archive, &rtc->seconds);
  archive_value(archive, &rtc->base);
  archive_value(archive, &rtc->seen);
  if (rtc->seconds > RTC_SECONDS_MOST || rtc->seconds < RTC_SECONDS_LEAST)
    archive_refuse(archive);
}

static void hpet_archive(struct archive *archive, struct hpet *hpet)
{
  archive_value(archive, &hpet->config);
  archive_value(archive, &hpet->status);
  archive_value(archive, &hpet->counter);
  archive_value(archive, &hpet->since);
  for (unsigned i = 0; i < HPET_TIMERS; i++) {
    archive_value(archive, &hpet->timer[i].config);
    archive_value(archive, &hpet->timer[i].comparator);
    archive_value(archive, &hpet->timer[i].period);
  }
}

static void power_archive(struct archive *archive, struct power *power)
{
  archive_value(archive, &power->control_61);
  archive_value(archive, &power->control_92);
  archive_flag(archive, &power->was_init);
  archive_value(archive, &power->reset);
  archive_array(archive, power->apm);
  archive_value(archive, &power->post);
  archive_value(archive, &power->status);
  archive_value(archive, &power->enable);
  archive_value(archive, &power->control);
  archive_value(archive, &power->seen);
  archive_most(archive, &power->sleep, POWER_WAKING);
}

/* ---- what people see and touch ---- */

static void i8042_archive(struct archive *archive, struct i8042 *i8042)
{
  struct i8042_keyboard *keyboard = &i8042->keyboard;
  archive_array(archive, keyboard->queue);
  archive_most(archive, &keyboard->first, I8042_QUEUE - 1);
  archive_most(archive, &keyboard->count, I8042_QUEUE);
  archive_value(archive, &keyboard->last);
  archive_value(archive, &keyboard->command);
  archive_most(archive, &keyboard->scan_set, 2);
  archive_value(archive, &keyboard->leds);
  archive_value(archive, &keyboard->rate);
  archive_flag(archive, &keyboard->is_scanning);
  archive_array(archive, i8042->ram);
  archive_value(archive, &i8042->command);
  archive_value(archive, &i8042->output);
  archive_value(archive, &i8042->status);
  archive_flag(archive, &i8042->is_break);
  archive_value(archive, &i8042->next);
}

static void uart_archive(struct archive *archive, struct uart *uart)
{
  archive_array(archive, uart->fifo);
  archive_most(archive, &uart->first, UART_FIFO - 1);
  archive_most(archive, &uart->count, UART_FIFO);
  archive_value(archive, &uart->ier);
  archive_value(archive, &uart->fcr);
  archive_value(archive, &uart->lcr);
  archive_value(archive, &uart->mcr);
  archive_value(archive, &uart->msr);
  archive_value(archive, &uart->scratch);
  archive_value(archive, &uart->errors);
  archive_flag(archive, &uart->is_sent);
  archive_value(archive, &uart->divisor);
  archive_value(archive, &uart->timeout);
  archive_flag(archive, &uart->has_timed_out);
  archive_most(archive, &uart->polls, UART_POLLS);
}

static void vga_archive(struct archive *archive, struct vga *vga)
{
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

/* ---- disk and the rest ---- */

static void register_archive(struct archive *archive, struct ide_register *place)
{
  archive_value(archive, &place->now);
  archive_value(archive, &place->before);
}

static void task_file_archive(struct archive *archive, struct ide *ide)
{
  register_archive(archive, &ide->feature);
  register_archive(archive, &ide->count);
  for (unsigned i = 0; i < 3; i++)
    register_archive(archive, &ide->lba[i]);
  archive_value(archive, &ide->drive);
  archive_value(archive, &ide->control);
  archive_value(archive, &ide->error);
  archive_value(archive, &ide->status);
  archive_value(archive, &ide->command);
}

static void ide_archive(struct archive *archive, struct ide *ide)
{
  task_file_archive(archive, ide);
  archive_most(archive, &ide->multiple, IDE_MULTIPLE_MAX);
  archive_flag(archive, &ide->has_interrupt);
  archive_value(archive, &ide->busy_until);
  archive_most(archive, &ide->phase, IDE_WRITING);
  archive_value(archive, &ide->sector);
  archive_value(archive, &ide->left);
  archive_most(archive, &ide->block, IDE_MULTIPLE_MAX);
  archive_most(archive, &ide->heads, 16);
  archive_most(archive, &ide->sectors, 255);
  archive_most(archive, &ide->size, sizeof(ide->buffer));
  archive_most(archive, &ide->position, ide->size);
  archive_array(archive, ide->buffer);
  if (ide->heads == 0 || ide->sectors == 0)
    archive_refuse(archive);
  if (ide->phase == IDE_WRITING && ide->size != ide->block * IDE_SECTOR) /* so much goes to the disk */
    archive_refuse(archive);
}

static void devices_archive(struct archive *archive, struct board *board)
{
  chip_archive(archive, &board->pic.chip[0]);
  chip_archive(archive, &board->pic.chip[1]);
  ioapic_archive(archive, &board->ioapic);
  for (unsigned i = 0; i < board->config.cpus; i++)
    lapic_archive(archive, &board->lapics[i]);
  pit_archive(archive, &board->pit);
  rtc_archive(archive, &board->rtc);
  hpet_archive(archive, &board->hpet);
  power_archive(archive, &board->power);
  i8042_archive(archive, &board->i8042);
  uart_archive(archive, &board->uart);
  vga_archive(archive, &board->vga);
  ide_archive(archive, &board->ide);
  archive_value(archive, &board->pci.address);
  archive_bytes(archive, board->pci.config, sizeof(board->pci.config));
  archive_value(archive, &board->fwcfg.item);
  archive_value(archive, &board->fwcfg.place);
  archive_value(archive, &board->testdevice.latch);
}

void board_archive(struct archive *archive, struct board *board)
{
  archive_flag(archive, &board->is_touched);
  archive_most(archive, &board->intr, (1u << board->config.cpus) - 1);
  archive_value(archive, &board->deadline);
  archive_most(archive, &board->lines, (UINT32_C(1) << ISA_LINES) - 1);
  archive_flag(archive, &board->a20_is_open);
  devices_archive(archive, board);
  if (board->config.has_test_device)
    archive_bytes(archive, board->testdevice.memory, TESTDEVICE_SIZE);
}

size_t board_save(struct board *board, void *bytes, size_t size)
{
  struct archive archive = archive_writer(bytes, size);
  board_archive(&archive, board);
  return archive.at;
}

int board_load(struct board *board, const void *bytes, size_t size)
{
  struct archive archive = archive_reader(bytes, size);
  board_archive(&archive, board);
  int error = archive_end(&archive);
  if (error >= 0)
    board->host.a20(board->host.data, board->a20_is_open);
  return error;
}

bool board_intr(const struct board *board, unsigned cpu)
{
  return board->intr >> cpu & 1;
}
