/* CAN channels of Diapason's USB server, by the names and numbers of Kvaser's CANlib.
 *
 * A handle is the number of its channel. One thread at a time uses a handle; another one gets
 * canERR_NO_ACCESS meanwhile. A channel that is opened with canOPEN_NO_INIT_ACCESS only reads, and
 * needs nothing but a [[pipe]] from its interface; any other needs a [[pipe]] to it as well.
 * Timeouts are milliseconds; 0xFFFFFFFF waits as long as it takes. Times of messages are
 * milliseconds since boot, unless canIOCTL_SET_TIMER_SCALE says otherwise. */
#ifndef DIAPASON_CANLIB_H
#define DIAPASON_CANLIB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int canStatus;
typedef int CanHandle;

/* Results. */
#define canOK 0
#define canERR_PARAM (-1)
#define canERR_NOMSG (-2)
#define canERR_NOTFOUND (-3)
#define canERR_TIMEOUT (-7)
#define canERR_NOTINITIALIZED (-8) /* the channel is off its bus */
#define canERR_INVHANDLE (-10)
#define canERR_TXBUFOFL (-13)
#define canERR_HARDWARE (-15) /* bus-off, or frames were given up */
#define canERR_NOT_SUPPORTED (-19)
#define canERR_INTERNAL (-30)
#define canERR_NO_ACCESS (-31) /* opened to be read only, or in use by another thread */
#define canERR_NOT_IMPLEMENTED (-32)

/* Flags of messages. */
#define canMSG_RTR 0x1
#define canMSG_STD 0x2
#define canMSG_EXT 0x4
#define canMSGERR_SW_OVERRUN 0x400 /* messages before this one were lost */
#define canFDMSG_FDF 0x10000       /* CAN FD, on a channel that was opened with canOPEN_CAN_FD */
#define canFDMSG_BRS 0x20000       /* written with canFDMSG_FDF always, or canERR_PARAM */
#define canFDMSG_ESI 0x40000       /* only in what is read */

/* Flags of canOpenChannel. */
#define canOPEN_EXCLUSIVE 0x8
#define canOPEN_REQUIRE_EXTENDED 0x10
#define canOPEN_ACCEPT_VIRTUAL 0x20
#define canOPEN_REQUIRE_INIT_ACCESS 0x80
#define canOPEN_NO_INIT_ACCESS 0x100
#define canOPEN_CAN_FD 0x400 /* needs data_rates for the channel in the description */

/* Flags of canReadStatus. */
#define canSTAT_ERROR_PASSIVE 0x1
#define canSTAT_BUS_OFF 0x2
#define canSTAT_ERROR_WARNING 0x4
#define canSTAT_ERROR_ACTIVE 0x8
#define canSTAT_TX_PENDING 0x10

/* Ways of taking part in the bus. */
#define canDRIVER_SILENT 1
#define canDRIVER_NORMAL 4

/* Functions of canIoCtl. */
#define canIOCTL_SET_TIMER_SCALE 6 /* a uint32_t: microseconds of a unit of time */
#define canIOCTL_FLUSH_RX_BUFFER 10

/* Bit rates of canSetBusParams. They have segments of their own; tseg1 and tseg2 do not count. */
#define canBITRATE_1M (-1)
#define canBITRATE_500K (-2)
#define canBITRATE_250K (-3)
#define canBITRATE_125K (-4)
#define canBITRATE_100K (-5)
#define canBITRATE_62K (-6)
#define canBITRATE_50K (-7)
#define canBITRATE_83K (-8)
#define canBITRATE_10K (-9)

void canInitializeLibrary(void);
/* Returns a handle, or a result below 0. Without the grants the process ends, and so it does if
 * canOPEN_CAN_FD and data_rates of the channel in the description do not go together. */
CanHandle canOpenChannel(int channel, int flags);
canStatus canClose(CanHandle handle);
/* freq is a number of a bit rate, or a bit rate in Hz; tseg1 and tseg2 may both be 0 then. */
canStatus canSetBusParams(CanHandle handle, long freq, unsigned int tseg1, unsigned int tseg2,
                          unsigned int sjw, unsigned int noSamp, unsigned int syncmode);
canStatus canSetBusOutputControl(CanHandle handle, unsigned int drivertype);
/* Takes part in the bus. If the interface is not there within 5 s, the result is canERR_TIMEOUT,
 * and the channel takes part as soon as the interface is there. */
canStatus canBusOn(CanHandle handle);
canStatus canBusOff(CanHandle handle);
canStatus canWrite(CanHandle handle, long id, const void *msg, unsigned int dlc,
                   unsigned int flag);
canStatus canWriteWait(CanHandle handle, long id, const void *msg, unsigned int dlc,
                       unsigned int flag, unsigned long timeout);
canStatus canWriteSync(CanHandle handle, unsigned long timeout);
/* Reads the oldest message that came. Every pointer may be null. msg has room for 8 bytes, or for
 * 64 if the channel was opened with canOPEN_CAN_FD. dlc is the number of bytes of a message with
 * canFDMSG_FDF. To write one, dlc counts its bytes, which are padded with zeros to the next length
 * that CAN FD has. */
canStatus canRead(CanHandle handle, long *id, void *msg, unsigned int *dlc, unsigned int *flag,
                  unsigned long *time);
/* The same, waiting for a message. None in time is canERR_NOMSG. */
canStatus canReadWait(CanHandle handle, long *id, void *msg, unsigned int *dlc,
                      unsigned int *flag, unsigned long *time, unsigned long timeout);
canStatus canReadStatus(CanHandle handle, unsigned long *flags);
canStatus canRequestChipStatus(CanHandle handle);
canStatus canReadErrorCounters(CanHandle handle, unsigned int *txErr, unsigned int *rxErr,
                               unsigned int *ovErr);
canStatus canSetAcceptanceFilter(CanHandle handle, unsigned int code, unsigned int mask,
                                 int is_extended);
canStatus canFlushReceiveQueue(CanHandle handle);
canStatus canIoCtl(CanHandle handle, unsigned int func, const void *buf, unsigned int buflen);
canStatus kvReadTimer64(CanHandle handle, int64_t *time);
canStatus canGetErrorText(canStatus err, char *buf, unsigned int bufsiz);

/* Not in CANlib: counts messages that are missing by what others say, so that the report of the
 * pipe has them. */
canStatus dia_can_missed(CanHandle handle, uint64_t messages);

#ifdef __cplusplus
}
#endif

#endif
