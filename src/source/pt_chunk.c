/* SPDX-License-Identifier: Apache-2.0
 *
 * Linux starts and stops Intel PT with every switch of threads, but a PSB packet, from which a decoder can begin, comes
 * only every few KiB, and addresses are sent as differences to the last one that was sent (Intel SDM vol. 3, "Intel
 * Processor Trace", IP compression). To make the chunks of one thread decodable on their own, the last address is
 * tracked through all chunks of a processor, and each chunk gets a PSB and its first address in full.
 */
#include "source/pt_chunk.h"

#include <intel-pt.h>
#include <string.h>

#define MODE_EXEC 0x99u
#define MODE_64 0x01u /* CS.L */
#define IP_FULL_SIZE 7u

static const uint8_t psb[16] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

/* ---- addresses ---- */

/* The address of a packet. Returns false if it has none. */
static bool ip_apply(struct pt_state *state, const struct pt_packet_ip *packet)
{
  uint64_t low = packet->ip;

  switch (packet->ipc) {
  case pt_ipc_update_16:
    state->last_ip = (state->last_ip & ~UINT64_C(0xFFFF)) | (low & 0xFFFF);
    return state->is_known;
  case pt_ipc_update_32:
    state->last_ip = (state->last_ip & ~UINT64_C(0xFFFFFFFF)) | (low & 0xFFFFFFFF);
    return state->is_known;
  case pt_ipc_update_48:
    state->last_ip = (state->last_ip & ~UINT64_C(0xFFFFFFFFFFFF)) | (low & 0xFFFFFFFFFFFF);
    return state->is_known;
  case pt_ipc_sext_48:
    state->last_ip = (uint64_t)((int64_t)(low << 16) >> 16);
    break;
  case pt_ipc_full:
    state->last_ip = low;
    break;
  default:
    return false;
  }
  state->is_known = true;
  return true;
}

/* The low five bits of the opcode of a packet with an address; 0 if it has none. */
static uint8_t ip_opcode(enum pt_packet_type type)
{
  switch (type) {
  case ppt_tip:
    return 0x0D;
  case ppt_tip_pge:
    return 0x11;
  case ppt_tip_pgd:
    return 0x01;
  case ppt_fup:
    return 0x1D;
  default:
    return 0;
  }
}

/* ---- packets ---- */

struct chunk {
  struct pt_state *state;
  uint8_t *bytes;
  size_t size;
  bool has_ip; /* its first address has been written in full */
};

static void chunk_put(struct chunk *chunk, const void *bytes, size_t size)
{
  memcpy(chunk->bytes + chunk->size, bytes, size);
  chunk->size += size;
}

static void chunk_put_ip(struct chunk *chunk, uint8_t opcode)
{
  uint8_t packet[IP_FULL_SIZE] = {(uint8_t)(opcode | pt_ipc_sext_48 << 5)};

  for (unsigned i = 0; i < 6; i++)
    packet[1 + i] = (uint8_t)(chunk->state->last_ip >> 8 * i);
  chunk_put(chunk, packet, sizeof(packet));
  chunk->has_ip = true;
}

/* Returns false if the address cannot be determined. */
static bool chunk_take(struct chunk *chunk, const struct pt_packet *packet, const uint8_t *bytes)
{
  uint8_t opcode = ip_opcode(packet->type);
  bool has_address = opcode && ip_apply(chunk->state, &packet->payload.ip);

  if (packet->type == ppt_psb) {
    chunk->state->last_ip = 0;
    chunk->state->is_known = chunk->has_ip = true;
  }
  if (packet->type == ppt_mode && packet->payload.mode.leaf == pt_mol_exec)
    chunk->state->mode = bytes[1];
  if (has_address && !chunk->has_ip)
    chunk_put_ip(chunk, opcode);
  else if (opcode && packet->payload.ip.ipc != pt_ipc_suppressed && !has_address)
    return false;
  else
    chunk_put(chunk, bytes, packet->size);
  return true;
}

size_t pt_chunk_make(struct pt_state *state, const uint8_t *bytes, size_t size, uint8_t *ret_chunk)
{
  struct pt_config config = {.size = sizeof(config), .begin = (uint8_t *)(uintptr_t)bytes};
  struct chunk chunk = {.state = state, .bytes = ret_chunk};
  const uint8_t mode[] = {MODE_EXEC, state->mode ? state->mode : MODE_64, 0x02, 0x23}; /* and PSBEND */
  struct pt_packet_decoder *decoder;
  struct pt_packet packet;
  uint64_t offset = 0;
  bool is_good = true;

  if (size < sizeof(psb) || memcmp(bytes, psb, sizeof(psb)) != 0) {
    chunk_put(&chunk, psb, sizeof(psb));
    chunk_put(&chunk, mode, sizeof(mode));
  }
  config.end = config.begin + size;
  decoder = size ? pt_pkt_alloc_decoder(&config) : NULL;
  if (!decoder || pt_pkt_sync_set(decoder, 0) < 0)
    is_good = false;
  while (is_good && pt_pkt_next(decoder, &packet, sizeof(packet)) > 0) {
    is_good = chunk_take(&chunk, &packet, bytes + offset);
    offset += packet.size;
  }
  pt_pkt_free_decoder(decoder);
  if (is_good && offset < size) { /* the decoder handles invalid packets: it searches for the next PSB */
    chunk_put(&chunk, bytes + offset, (size_t)(size - offset));
    *state = (struct pt_state){0};
  }
  if (!is_good)
    *state = (struct pt_state){0};
  return is_good ? chunk.size : 0;
}
