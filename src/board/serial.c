/* SPDX-License-Identifier: Apache-2.0
 *
 * COM1 at 0x3F8 with IRQ 4: National's data sheet of the PC16550D. Bytes leave at once, however slow the divisor says
 * the line is, so that output costs a guest no time; the time of a character only decides when received bytes below the
 * trigger level time out. IRQ 4 passes through OUT2, as in every PC.
 */
#include "base/base.h"
#include "board/state.h"

enum { REG_DATA, REG_IER, REG_IIR, REG_LCR, REG_MCR, REG_LSR, REG_MSR, REG_SCRATCH };

enum {
  IER_RECEIVED = 0x01,
  IER_SENT = 0x02,
  IER_LINE = 0x04,
  IER_MODEM = 0x08,
};

enum {
  IIR_NONE = 0x01,
  IIR_MODEM = 0x00,
  IIR_SENT = 0x02,
  IIR_RECEIVED = 0x04,
  IIR_LINE = 0x06,
  IIR_TIMEOUT = 0x0C,
  IIR_FIFO = 0xC0,
};

enum {
  FCR_ENABLE = 0x01,
  FCR_CLEAR_RECEIVER = 0x02,
  FCR_CLEAR_SENDER = 0x04,
};

enum {
  LSR_READY = 0x01,
  LSR_OVERRUN = 0x02,
  LSR_BREAK = 0x10,
  LSR_SENT = 0x60, /* THRE and TEMT */
};

enum {
  LCR_LENGTH = 0x03,
  LCR_BREAK = 0x40,
  LCR_DIVISOR = 0x80,
};

enum {
  MCR_DTR = 0x01,
  MCR_RTS = 0x02,
  MCR_OUT1 = 0x04,
  MCR_OUT2 = 0x08,
  MCR_LOOP = 0x10,
};

enum {
  MSR_CTS = 0x10,
  MSR_DSR = 0x20,
  MSR_RI = 0x40,
  MSR_DCD = 0x80,
  MSR_DELTA_RI = 0x04,
};

#define IRQ_SERIAL 4
#define UART_HERTZ UINT64_C(115200) /* divisor 1, in bits a second */

#define UART_FIFO 16u
#define UART_POLLS 16u

struct uart {
  uint8_t fifo[UART_FIFO]; /* received; one byte when FIFOs are off */
  uint8_t first, count;
  uint8_t ier, fcr, lcr, mcr, msr, scratch;
  uint8_t errors; /* of LSR, until it is read */
  bool is_sent;   /* THR became empty, and the guest has not been told */
  uint16_t divisor;
  uint64_t timeout; /* time at which bytes below the trigger level cause a timeout interrupt */
  bool has_timed_out;
  uint8_t polls; /* reads of LSR or of no data in a row, up to UART_POLLS: the guest waits for a byte */
};

static struct uart *uart_of(const struct board *board)
{
  return device_state(board, DEVICE_NUMBER_serial);
}

/* ---- interrupts ---- */

static unsigned uart_trigger(const struct uart *uart)
{
  static const uint8_t levels[4] = {1, 4, 8, 14};

  return uart->fcr & FCR_ENABLE ? levels[uart->fcr >> 6] : 1;
}

/* The identification of the pending interrupt of highest priority. */
static uint8_t uart_identify(const struct uart *uart)
{
  if ((uart->ier & IER_LINE) && uart->errors)
    return IIR_LINE;
  if ((uart->ier & IER_RECEIVED) && uart->count >= uart_trigger(uart))
    return IIR_RECEIVED;
  if ((uart->ier & IER_RECEIVED) && uart->has_timed_out)
    return IIR_TIMEOUT;
  if ((uart->ier & IER_SENT) && uart->is_sent)
    return IIR_SENT;
  if ((uart->ier & IER_MODEM) && (uart->msr & 0x0F))
    return IIR_MODEM;
  return IIR_NONE;
}

static void uart_signal(struct board *board)
{
  const struct uart *uart = uart_of(board);

  line_set(board, IRQ_SERIAL, uart_identify(uart) != IIR_NONE && (uart->mcr & MCR_OUT2));
}

/* Four characters of ten bits, counted from the last byte that came or went. */
static void uart_restart_timeout(struct uart *uart, uint64_t now)
{
  uart->has_timed_out = false;
  uart->timeout = CLOCK_NEVER;
  if (uart->count && (uart->fcr & FCR_ENABLE))
    uart->timeout = now + 40 * CLOCK_SECOND * (uart->divisor ? uart->divisor : 1) / UART_HERTZ;
}

static void uart_advance(struct board *board, uint64_t now)
{
  struct uart *uart = uart_of(board);

  if (now < uart->timeout)
    return;
  uart->timeout = CLOCK_NEVER;
  uart->has_timed_out = true;
  board->is_touched = true;
  uart_signal(board);
}

static uint64_t uart_deadline(const struct board *board)
{
  const struct uart *uart = uart_of(board);
  bool is_heard = (uart->ier & IER_RECEIVED) && (uart->mcr & MCR_OUT2) && uart_identify(uart) == IIR_NONE;

  return is_heard && line_reaches(board, IRQ_SERIAL) ? uart->timeout : CLOCK_NEVER;
}

/* ---- receiving ---- */

static void uart_put(struct uart *uart, uint8_t byte, uint64_t now)
{
  unsigned size = uart->fcr & FCR_ENABLE ? UART_FIFO : 1;

  if (uart->count < size)
    uart->fifo[(uart->first + uart->count++) % UART_FIFO] = byte;
  else {
    uart->errors |= LSR_OVERRUN;
    if (size == 1) /* without FIFO the new byte replaces the old one */
      uart->fifo[uart->first] = byte;
  }
  uart_restart_timeout(uart, now);
}

static uint8_t uart_take(struct uart *uart, uint64_t now)
{
  if (uart->count == 0)
    return 0;
  uint8_t byte = uart->fifo[uart->first];
  uart->first = (uint8_t)((uart->first + 1) % UART_FIFO);
  uart->count--;
  uart_restart_timeout(uart, now);
  return byte;
}

bool board_serial_receive(struct board *board, uint8_t byte)
{
  struct uart *uart = uart_of(board);
  unsigned size = uart->fcr & FCR_ENABLE ? UART_FIFO : 1;

  if (uart->count >= size || (uart->mcr & MCR_LOOP) || board_is_asleep(board))
    return false;
  uart_advance(board, board_now(board));
  uart_put(uart, byte, board_now(board));
  uart_signal(board);
  board_settle(board);
  return true;
}

/* A driver reads LSR once or twice for each byte that it sends. A guest that waits for a byte reads it over and over.
 */
static void uart_count_poll(struct uart *uart)
{
  if (!uart->count && uart->polls < UART_POLLS)
    uart->polls++;
}

bool board_serial_is_awaited(const struct board *board)
{
  const struct uart *uart = uart_of(board);

  return !board_is_asleep(board) && ((uart->ier & IER_RECEIVED) || uart->polls == UART_POLLS);
}

/* ---- sending and modem lines ---- */

static void uart_send(struct board *board, uint8_t byte)
{
  struct uart *uart = uart_of(board);

  uart->is_sent = false;
  uart_signal(board); /* IRQ 4 falls, so that its next edge can be seen */
  if (uart->mcr & MCR_LOOP)
    uart_put(uart, byte & (uint8_t)(0x1F << (uart->lcr & LCR_LENGTH) | 0x1F), board_now(board));
  else /* whole bytes: a guest that never set the length means 8 */
    board->host.serial(board->host.data, byte);
  uart->is_sent = true;
  uart_signal(board);
}

/* The other end is always connected. In loopback mode, the modem lines are those of MCR. */
static uint8_t uart_modem_lines(const struct uart *uart)
{
  uint8_t mcr = uart->mcr;

  if (!(mcr & MCR_LOOP))
    return MSR_CTS | MSR_DSR | MSR_DCD;
  return (uint8_t)((mcr & MCR_RTS ? MSR_CTS : 0) | (mcr & MCR_DTR ? MSR_DSR : 0) | (mcr & MCR_OUT1 ? MSR_RI : 0) |
                   (mcr & MCR_OUT2 ? MSR_DCD : 0));
}

static void uart_update_modem(struct uart *uart)
{
  uint8_t lines = uart_modem_lines(uart), changes = (uint8_t)((lines ^ uart->msr) >> 4);

  if (lines & MSR_RI) /* only its trailing edge counts */
    changes &= (uint8_t)~MSR_DELTA_RI;
  uart->msr = (uint8_t)(lines | (uart->msr & 0x0F) | changes);
}

/* ---- registers ---- */

static uint8_t uart_read_lsr(struct uart *uart)
{
  uint8_t value = (uint8_t)(LSR_SENT | uart->errors | (uart->count ? LSR_READY : 0));

  uart->errors = 0;
  return value;
}

static uint8_t uart_read_iir(struct uart *uart)
{
  uint8_t value = uart_identify(uart);

  if (value == IIR_SENT)
    uart->is_sent = false;
  return (uint8_t)(value | (uart->fcr & FCR_ENABLE ? IIR_FIFO : 0));
}

static uint8_t uart_read_msr(struct uart *uart)
{
  uint8_t value = uart->msr;

  uart->msr &= 0xF0;
  return value;
}

static uint8_t uart_read(struct uart *uart, unsigned index, uint64_t now)
{
  switch (index) {
  case REG_DATA:
    if (uart->lcr & LCR_DIVISOR)
      return (uint8_t)uart->divisor;
    uart_count_poll(uart);
    return uart_take(uart, now);
  case REG_IER:
    return uart->lcr & LCR_DIVISOR ? (uint8_t)(uart->divisor >> 8) : uart->ier;
  case REG_IIR:
    return uart_read_iir(uart);
  case REG_LCR:
    return uart->lcr;
  case REG_MCR:
    return uart->mcr;
  case REG_LSR:
    uart_count_poll(uart);
    return uart_read_lsr(uart);
  case REG_MSR:
    return uart_read_msr(uart);
  default:
    return uart->scratch;
  }
}

static uint32_t uart_in(struct board *board, uint16_t port, unsigned size)
{
  struct uart *uart = uart_of(board);
  uint64_t now = board_now(board);

  (void)size;
  uart_advance(board, now);
  uint8_t before = uart_identify(uart);
  uint64_t timeout = uart->timeout;
  uint8_t value = uart_read(uart, port & 7, now);
  if (uart_identify(uart) != before || uart->timeout != timeout) {
    board->is_touched = true;
    uart_signal(board);
  }
  return value;
}

static void uart_write_ier(struct uart *uart, uint8_t value)
{
  if ((value & IER_SENT) && !(uart->ier & IER_SENT))
    uart->is_sent = true; /* an empty THR is reported when its interrupt is enabled */
  uart->ier = value & 0x0F;
}

static void uart_write_fcr(struct uart *uart, uint8_t value, uint64_t now)
{
  bool toggles = (uart->fcr ^ value) & FCR_ENABLE; /* a change clears both FIFOs */

  if ((value & FCR_CLEAR_RECEIVER) || toggles)
    uart->count = 0;
  uart->fcr = value & FCR_ENABLE ? value & (uint8_t) ~(FCR_CLEAR_RECEIVER | FCR_CLEAR_SENDER) : 0;
  uart_restart_timeout(uart, now);
}

static void uart_write_lcr(struct uart *uart, uint8_t value)
{
  bool starts_break = (value & ~uart->lcr) & LCR_BREAK;

  uart->lcr = value;
  if (starts_break && (uart->mcr & MCR_LOOP))
    uart->errors |= LSR_BREAK;
}

static void uart_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  struct uart *uart = uart_of(board);
  uint8_t byte = (uint8_t)value;
  uint64_t now = board_now(board);

  (void)size;
  uart_advance(board, now);
  uart->polls = 0;
  switch (port & 7) {
  case REG_DATA:
    if (uart->lcr & LCR_DIVISOR)
      uart->divisor = (uint16_t)((uart->divisor & 0xFF00) | byte);
    else
      uart_send(board, byte);
    break;
  case REG_IER:
    if (uart->lcr & LCR_DIVISOR)
      uart->divisor = (uint16_t)((uart->divisor & 0x00FF) | byte << 8);
    else
      uart_write_ier(uart, byte);
    break;
  case REG_IIR:
    uart_write_fcr(uart, byte, now);
    break;
  case REG_LCR:
    uart_write_lcr(uart, byte);
    break;
  case REG_MCR:
    uart->mcr = byte & 0x1F;
    uart_update_modem(uart);
    break;
  case REG_SCRATCH:
    uart->scratch = byte;
    break;
  default: /* LSR and MSR are for reading */
    break;
  }
  uart_signal(board);
}

static void uart_reset(struct board *board)
{
  *uart_of(board) = (struct uart){.divisor = 12, .timeout = CLOCK_NEVER, .msr = MSR_CTS | MSR_DSR | MSR_DCD};
}

/* ---- saving ---- */

static void uart_archive(struct archive *archive, struct board *board)
{
  struct uart *uart = uart_of(board);

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

static const struct port_range serial_ports[] = {
  {0x3F8, 0x3FF, 0, uart_in, uart_out},
  {0},
};

const struct device device_serial = {
  DEVICE_STATE(uart),      .ports = serial_ports,     .reset = uart_reset,
  .advance = uart_advance, .deadline = uart_deadline, .archive = uart_archive,
};
