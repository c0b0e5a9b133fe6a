// The Varlink server of the history: its methods, by file. Reading has a thread of its own, so that it delays nothing that is recorded.

import HistoryStore
import Protocols
import ServiceRuntime
import Varlink

final class HistoryServer {
  /// The size of a call in bytes: blocks to import are large.
  private static let callLimit = 1 << 20

  let store: StoreThread
  let reads: ReaderThread
  let checks: ReaderThread
  let keeper: PeriodKeeper
  let alerts: AlertKeeper
  let maintenance: Maintenance
  let loop: EventLoop
  /// The state of the recorder: why it does not record, and the number of dropped blocks.
  var state: () -> (failure: String?, dropped: Int) = { (nil, 0) }
  /// Stores what was recorded until now.
  var flush: () -> Void = {}
  let limit: Int
  private var server: VarlinkServer?

  init(
    store: StoreThread, reads: ReaderThread, checks: ReaderThread, keeper: PeriodKeeper, alerts: AlertKeeper, maintenance: Maintenance,
    loop: EventLoop, limit: Int
  ) {
    (self.store, self.reads, self.checks, self.keeper, self.alerts, self.maintenance) = (store, reads, checks, keeper, alerts, maintenance)
    (self.loop, self.limit) = (loop, limit)
  }

  /// Serves the socket at this path, or the one that systemd has passed.
  func start(path: String, access: ServiceAccess) throws(ValueError) {
    var limits = VarlinkServer.Limits()
    limits.call = Self.callLimit
    let server = VarlinkServer(
      product: "vehicled-history", interfaces: [.history], methods: readMethods + periodMethods + maintenanceMethods + alertMethods,
      limits: limits, loop: loop
    ) { access.check($0, for: $1, decide: $2) }
    try server.start(path: path, mode: 0o666)
    self.server = server
  }

  func close() { server?.close() }

  /// Replies with what `work` reads.
  func read<M>(_ call: MethodCall<M>, argument: String = "", _ work: @escaping @Sendable (HistoryReader) throws -> M.Result) {
    reads.run(work) { Self.reply($0, to: call, argument: argument) }
  }

  static func reply<M>(_ result: Result<M.Result, any Error>, to call: MethodCall<M>, argument: String = "") {
    switch result {
    case .success(let result): call.reply(result)
    case .failure(let error): fail(call, error, argument: argument)
    }
  }

  static func fail<M>(_ call: MethodCall<M>, _ error: any Error, argument: String = "") {
    switch error {
    case let error as HistoryContractError: call.fail(error)
    case let error as HistoryError: call.fail(error.contractError(argument: argument))
    default: call.fail(HistoryContractError.storeError(code: "failed", message: "\(error)"))
    }
  }
}
