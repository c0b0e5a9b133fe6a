// One connection to the broker: a handle of libmosquitto, which does no I/O of its own. The library's callbacks are collected as events. It
// is used by one thread at a time: `connect`, which blocks, by the connecting thread, all else by the loop.
// Source: mosquitto.h.

import CMosquitto
import Glibc

/// What happened on a connection.
enum BrokerEvent {
  case accepted(BrokerLimits)
  case refused(BrokerFailure)
  case ended(BrokerFailure)
  /// A message was acknowledged. `failure` is the reason if the broker rejects it, or has no subscriber for it.
  case acknowledged(id: CInt, failure: CInt?)
  case received(IncomingMessage)
  /// The broker rejects the subscription to a topic filter.
  case filterRejected(String)
}

/// What the broker can do.
struct BrokerLimits: Equatable, Sendable {
  /// Whether the connection uses MQTT 5.
  var isCurrent = true
  /// The number of messages that may be unacknowledged.
  var window = 20
  /// The highest topic alias; 0 for none.
  var aliases = 0
  /// The maximum size of a packet in bytes; nil for no limit.
  var packetSize: Int?
}

final class BrokerConnection: @unchecked Sendable {
  /// The number of packets to read or write at once.
  private static let packets: CInt = 100
  /// The last will waits for this many seconds, so that a short interruption is not reported. The session of the client ends at the same
  /// time: commands that were sent while the bridge did not run are not carried out later.
  private static let willDelay: UInt32 = 30

  /// The maximum size of a packet that the broker may send, and of a payload, in bytes. The largest useful ones are configurations for Home
  /// Assistant that an earlier run has published.
  private static let maxPacketSize: UInt32 = 512 << 10

  private static let library = mosquitto_lib_init()

  private let options: BrokerOptions
  private let isCurrent: Bool
  private let handle: OpaquePointer
  private var events: [BrokerEvent] = []
  /// The last error that the library has logged.
  private var details: String?
  private var aliases = TopicAliases(limit: 0)
  /// The topic filters by the ID of their subscription.
  private var subscriptions: [CInt: String] = [:]

  /// Prepares a connection, by MQTT 5 (`isCurrent`) or 3.1.1.
  init(_ options: BrokerOptions, isCurrent: Bool) throws(BrokerFailure) {
    _ = Self.library
    (self.options, self.isCurrent) = (options, isCurrent)
    guard let handle = mosquitto_new(options.clientID, !isCurrent, nil) else {
      throw BrokerFailure("invalid client ID \(options.clientID); set another client-id in mqtt.toml")
    }
    self.handle = handle
    mosquitto_user_data_set(handle, Unmanaged.passUnretained(self).toOpaque())
    setCallbacks()
    mosquitto_int_option(handle, MOSQ_OPT_PROTOCOL_VERSION, isCurrent ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311)
    mosquitto_int_option(handle, MOSQ_OPT_SEND_MAXIMUM, 65_535)
    mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1)
    if let user = options.user { mosquitto_username_pw_set(handle, user, options.password) }
    if options.scheme == .mqtts { try setTLS() }
    if let will = options.will { try setWill(will) }
  }

  deinit { mosquitto_destroy(handle) }

  private func setTLS() throws(BrokerFailure) {
    if options.authorities == nil { mosquitto_int_option(handle, MOSQ_OPT_TLS_USE_OS_CERTS, 1) }
    // The library needs a directory even if it uses the certificates of the system.
    let directory = options.authorities == nil ? "/etc/ssl/certs" : nil
    let code = mosquitto_tls_set(handle, options.authorities, directory, options.certificate, options.key, nil)
    guard code != MOSQ_ERR_SUCCESS.rawValue else { return }
    for file in [options.authorities, options.certificate, options.key].compactMap({ $0 }) where access(file, R_OK) != 0 {
      throw BrokerFailure("cannot read \(file): \(String(cString: strerror(errno)).lowercased()); check its path and permissions")
    }
    throw BrokerFailure("invalid TLS files: \(String(cString: mosquitto_strerror(code))); check ca-file, certificate and key in mqtt.toml")
  }

  private func setWill(_ will: OutgoingMessage) throws(BrokerFailure) {
    var properties: OpaquePointer?
    if isCurrent { mosquitto_property_add_int32(&properties, MQTT_PROP_WILL_DELAY_INTERVAL.id, Self.willDelay) }
    // The library frees the properties.
    let code = will.payload.withUnsafeBytes {
      mosquitto_will_set_v5(handle, will.topic, CInt($0.count), $0.baseAddress, 1, will.isRetained, properties)
    }
    guard code == MOSQ_ERR_SUCCESS.rawValue else { throw BrokerFailure("invalid topic \(will.topic); set another topic in mqtt.toml") }
  }

  // MARK: Connecting

  /// Resolves the name of the broker, connects, and sends the first packet. Blocks, in the worst case for minutes.
  func connect() -> BrokerFailure? {
    var properties: OpaquePointer?
    if isCurrent {
      mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL.id, Self.willDelay)
      mosquitto_property_add_int32(&properties, MQTT_PROP_MAXIMUM_PACKET_SIZE.id, Self.maxPacketSize)
    }
    defer { mosquitto_property_free_all(&properties) }
    errno = 0
    let code = mosquitto_connect_bind_v5(handle, options.host, CInt(options.port), CInt(options.keepAlive), nil, properties)
    return code == MOSQ_ERR_SUCCESS.rawValue ? nil : .library(code, errno: errno, details: details, options)
  }

  // MARK: Input and output

  /// -1 once the connection has ended.
  var descriptor: CInt { mosquitto_socket(handle) }
  var wantsWrite: Bool { mosquitto_want_write(handle) }

  /// Reads and writes what is possible without blocking, and checks the time. Returns what happened.
  func exchange(read: Bool) -> [BrokerEvent] {
    errno = 0
    var code = read ? mosquitto_loop_read(handle, Self.packets) : MOSQ_ERR_SUCCESS.rawValue
    if code == MOSQ_ERR_SUCCESS.rawValue, mosquitto_want_write(handle) { code = mosquitto_loop_write(handle, Self.packets) }
    if code == MOSQ_ERR_SUCCESS.rawValue { code = mosquitto_loop_misc(handle) }
    if code != MOSQ_ERR_SUCCESS.rawValue { events.append(.ended(.library(code, errno: errno, details: details, options))) }
    defer { events = [] }
    return events
  }

  /// Subscribes to the topic filters.
  func subscribe() {
    for filter in options.filters {
      var id: CInt = 0
      // The messages of this client do not come back (MQTT 5).
      mosquitto_subscribe_v5(handle, &id, filter, 1, isCurrent ? CInt(MQTT_SUB_OPT_NO_LOCAL.rawValue) : 0, nil)
      subscriptions[id] = filter
    }
  }

  /// Sends a message, and returns its ID, which its acknowledgement has.
  func publish(_ message: OutgoingMessage) throws(BrokerFailure) -> CInt {
    var properties: OpaquePointer?
    defer { mosquitto_property_free_all(&properties) }
    var topic: String? = message.topic
    if isCurrent {
      if let expiry = message.expiry { mosquitto_property_add_int32(&properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL.id, expiry) }
      if let correlation = message.correlation {
        mosquitto_property_add_binary(&properties, MQTT_PROP_CORRELATION_DATA.id, correlation, UInt16(correlation.count))
      }
      if let alias = aliases.alias(of: message.topic) {
        mosquitto_property_add_int16(&properties, MQTT_PROP_TOPIC_ALIAS.id, UInt16(alias.number))
        if !alias.isNew { topic = nil }
      }
    }
    var id: CInt = 0
    let code = message.payload.withUnsafeBytes {
      mosquitto_publish_v5(handle, &id, topic, CInt($0.count), $0.baseAddress, 1, message.isRetained, properties)
    }
    guard code == MOSQ_ERR_SUCCESS.rawValue else {
      aliases.failed(message.topic)
      throw .library(code, errno: errno, details: details, options)
    }
    return id
  }

  /// Ends the connection. The broker publishes the last will only if `withWill`, by MQTT 3.1.1 because it misses a packet.
  func disconnect(withWill: Bool) {
    guard isCurrent || !withWill else { return }
    mosquitto_disconnect_v5(handle, withWill ? MQTT_RC_DISCONNECT_WITH_WILL_MSG.code : 0, nil)
    _ = exchange(read: false)
  }

  // MARK: Callbacks

  private func setCallbacks() {
    mosquitto_connect_v5_callback_set(handle) { _, object, code, _, properties in
      BrokerConnection.from(object)?.accepted(code, properties)
    }
    mosquitto_disconnect_v5_callback_set(handle) { _, object, code, _ in
      guard let connection = BrokerConnection.from(object), code >= 0x80 else { return }
      connection.events.append(.ended(.ended(code, connection.options)))
    }
    mosquitto_publish_v5_callback_set(handle) { _, object, id, code, _ in
      BrokerConnection.from(object)?.events.append(.acknowledged(id: id, failure: code > 0 ? code : nil))
    }
    mosquitto_message_v5_callback_set(handle) { _, object, message, properties in
      guard let connection = BrokerConnection.from(object), let message, message.pointee.payloadlen <= BrokerConnection.maxPacketSize,
        let incoming = IncomingMessage(message.pointee, properties)
      else {
        return
      }
      connection.events.append(.received(incoming))
    }
    mosquitto_subscribe_v5_callback_set(handle) { _, object, id, count, granted, _ in
      guard let connection = BrokerConnection.from(object), let granted, count == 1, granted[0] >= 0x80,
        let filter = connection.subscriptions[id]
      else {
        return
      }
      connection.events.append(.filterRejected(filter))
    }
    mosquitto_log_callback_set(handle) { _, object, level, text in
      guard level == MOSQ_LOG_ERR, let text else { return }
      BrokerConnection.from(object)?.details = tlsDetails(String(cString: text))
    }
  }

  private static func from(_ object: UnsafeMutableRawPointer?) -> BrokerConnection? {
    object.map { Unmanaged<BrokerConnection>.fromOpaque($0).takeUnretainedValue() }
  }

  private func accepted(_ code: CInt, _ properties: OpaquePointer?) {
    guard code == 0 else { return events.append(.refused(.refused(code, options))) }
    var limits = BrokerLimits(isCurrent: isCurrent)
    var (window, highest, size): (UInt16, UInt16, UInt32) = (0, 0, 0)
    if mosquitto_property_read_int16(properties, MQTT_PROP_RECEIVE_MAXIMUM.id, &window, false) != nil, window > 0 {
      limits.window = min(Int(window), 100)
    } else if isCurrent {
      limits.window = 100
    }
    if mosquitto_property_read_int16(properties, MQTT_PROP_TOPIC_ALIAS_MAXIMUM.id, &highest, false) != nil { limits.aliases = Int(highest) }
    if mosquitto_property_read_int32(properties, MQTT_PROP_MAXIMUM_PACKET_SIZE.id, &size, false) != nil { limits.packetSize = Int(size) }
    aliases = TopicAliases(limit: limits.aliases)
    events.append(.accepted(limits))
  }
}

/// The cause in an error message of OpenSSL, such as `error:0A000086:SSL routines::certificate verify failed`.
private func tlsDetails(_ text: String) -> String {
  let cause = text.split(separator: ":").last.map(String.init) ?? text
  return cause.trimmingPrefix(while: \.isWhitespace).lowercased()
}

extension mqtt5_property {
  var id: CInt { CInt(bitPattern: rawValue) }
}

extension IncomingMessage {
  /// Converts a message of the library; nil if its topic is not text.
  fileprivate init?(_ message: mosquitto_message, _ properties: OpaquePointer?) {
    guard let topic = message.topic else { return nil }
    self.topic = String(cString: topic)
    payload = message.payload.map { Array(UnsafeRawBufferPointer(start: $0, count: Int(message.payloadlen))) } ?? []
    isRetained = message.retain
    var text: UnsafeMutablePointer<CChar>?
    if mosquitto_property_read_string(properties, MQTT_PROP_RESPONSE_TOPIC.id, &text, false) != nil, let text {
      responseTopic = String(cString: text)
      free(text)
    }
    var (data, length): (UnsafeMutableRawPointer?, UInt16) = (nil, 0)
    if mosquitto_property_read_binary(properties, MQTT_PROP_CORRELATION_DATA.id, &data, &length, false) != nil, let data {
      correlation = Array(UnsafeRawBufferPointer(start: data, count: Int(length)))
      free(data)
    }
  }
}
