// SPDX-License-Identifier: Apache-2.0
// The functions of NATS's C client that we use, loaded only when a server is named: the program
// starts on machines without the library.
#pragma once

#include <cstddef>

#include <nats/nats.h>

#include "base/result.h"

namespace ddpdoctor::transport {

// One row per function; the member has the name of the library's function.
#define DDPDOCTOR_LIBNATS(X)                 \
  X(nats_GetLastError)                       \
  X(natsStatus_GetText)                      \
  X(natsOptions_Create)                      \
  X(natsOptions_Destroy)                     \
  X(natsOptions_SetServers)                  \
  X(natsOptions_SetName)                     \
  X(natsOptions_SetTimeout)                  \
  X(natsOptions_SetMaxReconnect)             \
  X(natsOptions_SetReconnectWait)            \
  X(natsOptions_SetReconnectBufSize)         \
  X(natsOptions_SetPingInterval)             \
  X(natsOptions_SetMaxPingsOut)              \
  X(natsOptions_SetUserCredentialsFromFiles) \
  X(natsOptions_SetToken)                    \
  X(natsOptions_SetUserInfo)                 \
  X(natsOptions_SetSecure)                   \
  X(natsOptions_LoadCATrustedCertificates)   \
  X(natsOptions_LoadCertificatesChain)       \
  X(natsOptions_SetErrorHandler)             \
  X(natsOptions_SetWriteDeadline)            \
  X(natsConnection_Connect)                  \
  X(natsConnection_Destroy)                  \
  X(natsConnection_Status)                   \
  X(natsConnection_Publish)                  \
  X(natsConnection_PublishRequest)           \
  X(natsConnection_FlushTimeout)             \
  X(natsConnection_Subscribe)                \
  X(natsConnection_JetStream)                \
  X(natsSubscription_SetPendingLimits)       \
  X(natsSubscription_NextMsg)                \
  X(natsSubscription_Destroy)                \
  X(natsMsg_GetSubject)                      \
  X(natsMsg_GetReply)                        \
  X(natsMsg_GetData)                         \
  X(natsMsg_GetDataLength)                   \
  X(natsMsg_GetMetaData)                     \
  X(natsMsg_Destroy)                         \
  X(jsMsgMetaData_Destroy)                   \
  X(jsStreamConfig_Init)                     \
  X(jsSubOptions_Init)                       \
  X(js_AddStream)                            \
  X(jsOptions_Init)                          \
  X(jsPubOptions_Init)                       \
  X(jsStreamInfo_Destroy)                    \
  X(js_GetStreamInfo)                        \
  X(js_GetLastMsg)                           \
  X(js_PublishMsg)                           \
  X(js_PurgeStream)                          \
  X(natsMsg_Create)                          \
  X(natsMsgHeader_Set)                       \
  X(js_SubscribeSync)                        \
  X(jsCtx_Destroy)

struct LibNats {
#define DDPDOCTOR_MEMBER(name) decltype(&::name) name = nullptr;
  DDPDOCTOR_LIBNATS(DDPDOCTOR_MEMBER)
#undef DDPDOCTOR_MEMBER
  /// OpenSSL's, with which the library was linked; nullptr = it has no TLS.
  unsigned char* (*sha256)(const unsigned char* bytes, std::size_t size,
                           unsigned char* hash) = nullptr;
};

/// The library, loaded once.
base::Result<const LibNats*> load_libnats();

}  // namespace ddpdoctor::transport
