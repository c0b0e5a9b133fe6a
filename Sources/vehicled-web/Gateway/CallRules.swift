// Which calls a page may make. The daemon checks the rights of this server as well, so a page never has more than these. No I/O.

import Protocols
import ServiceRuntime
import Varlink

/// A service whose socket pages can use.
enum GatewayService: String, CaseIterable, Sendable {
  case daemon = "io.vehicled"
  case history = "io.vehicled.history"

  /// The path of the WebSocket.
  var path: String { "/varlink/\(rawValue)" }

  /// The program that serves it.
  var program: String { self == .daemon ? "vehicled" : "vehicled-history" }
}

enum CallRules {
  private enum Requirement {
    /// Reads only.
    case observe
    /// Changes the device in the parameter `device`.
    case control
  }

  /// The methods that pages may call. Driving, searching, reloading and the log level are left out: they are matters of the command line,
  /// as is everything that changes, imports or checks what the history has recorded.
  private static let methods: [GatewayService: [String: Requirement]] = [
    .daemon: [
      Contract.Status.name: .observe, Contract.Describe.name: .observe, Contract.Get.name: .observe, Contract.Watch.name: .observe,
      Contract.Diagnose.name: .observe, Contract.Statistics.name: .observe, Contract.Log.name: .observe, Contract.Record.name: .observe,
      Contract.Set.name: .control, Contract.Call.name: .control, Contract.Connect.name: .control, Contract.Disconnect.name: .control,
    ],
    .history: [
      HistoryContract.StatusMethod.name: .observe, HistoryContract.SeriesMethod.name: .observe,
      HistoryContract.SamplesMethod.name: .observe,
      HistoryContract.PlotMethod.name: .observe, HistoryContract.PeriodsMethod.name: .observe, HistoryContract.PeriodMethod.name: .observe,
      HistoryContract.AlertsMethod.name: .observe,
    ],
  ]

  /// Sends arbitrary requests to ECUs and adapters.
  private static let rawQuery = "query"

  /// Returns the error for a call that the page may not make; nil if it may.
  ///
  /// What moves a vehicle needs no rule: the daemon accepts it only with a lease, which pages cannot get, and cannot use.
  ///
  /// `withheld`: the devices for which the browser must sign in again.
  static func refusal(
    of call: VarlinkCall, to service: GatewayService, _ rights: Rights, withheld: Set<String> = []
  ) -> ContractError? {
    if call.method.hasPrefix("\(VarlinkService.interface).") { return nil }
    guard let requirement = methods[service]?[call.method] else {
      return .permissionDenied(missing: "\(printable(call.method, limit: 60)) is not available to pages; use vehiclectl")
    }
    guard requirement == .control else { return nil }
    guard let device = call.text(of: "device") else { return .invalidParameter(parameter: "device") }
    if withheld.contains(device) {
      return .permissionDenied(
        missing: "vehicled-web has restarted; to control \(printable(device, limit: 60)), sign in again with the token")
    }
    guard rights.control.contains(device) else {
      return .permissionDenied(
        missing:
          "this browser may not control \(printable(device, limit: 60)); start vehicled-web with --control, or see control in web.toml")
    }
    if call.text(of: "lease") != nil { return .permissionDenied(missing: "pages cannot drive; use \"vehiclectl drive\"") }
    if call.method == Contract.Call.name, call.text(of: "action") == rawQuery {
      return .permissionDenied(missing: "raw queries are not available to pages; use \"vehiclectl do\"")
    }
    return nil
  }
}
