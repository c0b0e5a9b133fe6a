// Why there is no connection to the broker: the cause and the remedy.
// Source: MQTT 5.0, section 2.4 (reason codes); MQTT 3.1.1, section 3.2.2.3 (return codes); mosquitto.h.

import CMosquitto
import Glibc

struct BrokerFailure: Error, Equatable, CustomStringConvertible {
  /// What happened and why; for users.
  var description: String
  /// Whether the broker accepts only MQTT 3.1.1.
  var needsOldProtocol = false
  /// Whether the broker has closed the connection without a reason.
  var isWithoutReply = false
  /// Whether only one message cannot be sent, and the connection still exists.
  var isOfMessage = false

  init(_ description: String) { self.description = description }

  /// A code of the library. `errno` is that of the call, and `details` the library's last error message.
  static func library(_ code: CInt, errno: CInt, details: String?, _ options: BrokerOptions) -> BrokerFailure {
    let broker = options.description
    switch mosq_err_t(Int32(code)) {
    case MOSQ_ERR_ERRNO:
      return BrokerFailure("cannot connect to \(broker): \(text(of: errno)); check that the broker runs and the network is up")
    case MOSQ_ERR_EAI, MOSQ_ERR_LOOKUP:
      return BrokerFailure("cannot connect to \(broker): host not found; check broker in mqtt.toml and the network")
    case MOSQ_ERR_TLS, MOSQ_ERR_TLS_HANDSHAKE:
      return BrokerFailure(
        "cannot connect to \(broker): TLS failed: \(details ?? "the broker has ended the handshake"); check ca-file, certificate and key in mqtt.toml, and the clock"
      )
    case MOSQ_ERR_CONN_LOST, MOSQ_ERR_NO_CONN, MOSQ_ERR_KEEPALIVE:
      var failure = BrokerFailure("connection to \(broker) lost")
      failure.isWithoutReply = true
      return failure
    case MOSQ_ERR_OVERSIZE_PACKET, MOSQ_ERR_PAYLOAD_SIZE, MOSQ_ERR_INVAL, MOSQ_ERR_MALFORMED_UTF8, MOSQ_ERR_MALFORMED_PACKET:
      var failure = BrokerFailure(String(cString: mosquitto_strerror(code)).lowercased().trimmingFullStop)
      failure.isOfMessage = true
      return failure
    default:
      return BrokerFailure("\(broker): \(String(cString: mosquitto_strerror(code)))")
    }
  }

  /// The broker has accepted the connection, and then sent nothing.
  static func noReply(_ options: BrokerOptions) -> BrokerFailure {
    var failure = BrokerFailure("no reply from \(options.description); check that it is an MQTT broker")
    failure.isWithoutReply = true
    return failure
  }

  /// The reason code of a CONNACK.
  static func refused(_ code: CInt, _ options: BrokerOptions) -> BrokerFailure {
    let broker = options.description
    // MQTT 3.1.1 has the codes 1 to 5.
    switch code {
    case 1, MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION.code:
      var failure = BrokerFailure("\(broker) does not support this version of MQTT; update the broker")
      failure.needsOldProtocol = true
      return failure
    case 2, MQTT_RC_CLIENTID_NOT_VALID.code:
      return BrokerFailure("\(broker) rejects the client ID \(options.clientID); set client-id in mqtt.toml")
    case 4, MQTT_RC_BAD_USERNAME_OR_PASSWORD.code:
      return BrokerFailure("\(broker) rejects the user name or password; check user and password-file in mqtt.toml")
    case 5, MQTT_RC_NOT_AUTHORIZED.code:
      return BrokerFailure("\(broker) does not authorize the connection; set user and password-file in mqtt.toml")
    case 3, MQTT_RC_SERVER_UNAVAILABLE.code, MQTT_RC_SERVER_BUSY.code:
      return BrokerFailure("\(broker) is not available at the moment")
    case MQTT_RC_PACKET_TOO_LARGE.code, MQTT_RC_QUOTA_EXCEEDED.code:
      return BrokerFailure("\(broker) refuses the connection: \(reason(code)); raise its limits")
    default:
      return BrokerFailure("\(broker) refuses the connection: \(reason(code))")
    }
  }

  /// The reason code of a DISCONNECT, if there is one.
  static func ended(_ code: CInt, _ options: BrokerOptions) -> BrokerFailure {
    if code == MQTT_RC_SESSION_TAKEN_OVER.code {
      return BrokerFailure(
        "another client with the client ID \(options.clientID) has connected to \(options.description); set another client-id in mqtt.toml")
    }
    return BrokerFailure("connection to \(options.description) ended by the broker: \(reason(code))")
  }

  /// The text of a reason code, in lower case.
  static func reason(_ code: CInt) -> String {
    String(cString: mosquitto_reason_string(code)).lowercased().trimmingFullStop
  }

  private static func text(of error: CInt) -> String {
    error == 0 ? "connection refused" : String(cString: strerror(error)).lowercased()
  }
}

extension mqtt5_return_codes {
  var code: CInt { CInt(bitPattern: rawValue) }
}

extension String {
  fileprivate var trimmingFullStop: String { hasSuffix(".") ? String(dropLast()) : self }
}
