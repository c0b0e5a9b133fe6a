// The methods that read: values, schemas, link traffic, devices in range and findings. Streams last until one side ends them.

import Protocols
import Varlink

/// The maximum number of references in one call.
private let maxReferences = 1024

extension Methods {
  func status(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Status.Parameters.self)
    call.reply(Contract.Status.Result(devices: try states(of: parameters.device, for: call).map { $0.wireDevice() }))
  }

  func describe(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Describe.Parameters.self)
    call.reply(Contract.Describe.Result(schemas: try states(of: parameters.device, for: call).map(\.wireSchema)))
  }

  func get(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Get.Parameters.self)
    guard parameters.references.count <= maxReferences else { throw ContractError.invalidParameter(parameter: "references") }
    let properties = try parameters.references.map { reference throws(ContractError) in try resolve(reference, for: call) }
    let boot = Clock.boot()
    var body: [UInt8] = []
    var message: [UInt8] = []
    ReadingWriter.list("readings", to: &body) { body in
      for property in properties {
        ReadingWriter.separate(&body)
        property.state.write(property.index, at: boot, to: &body)
      }
    }
    ReadingWriter.reply(body: body, to: &message)
    call.reply(encoded: message)
  }

  func watch(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Watch.Parameters.self)
    guard call.request.more else { throw ContractError.expectedMore }
    guard parameters.references?.count ?? 0 <= maxReferences else { throw ContractError.invalidParameter(parameter: "references") }
    let interval = parameters.minimumIntervalMilliseconds ?? 0
    guard Contract.Watch.intervals.contains(interval) else {
      throw ContractError.invalidParameter(parameter: "minimumIntervalMilliseconds")
    }
    call.isStream = true
    let watcher = Watcher(sink: call, interval: Int64(interval) * .millisecond)
    call.cancel = { [hub] in
      watcher.end()
      hub.unsubscribe(watcher)
    }
    call.roomHandler = { watcher.sendPending() }
    for reference in parameters.references ?? [] { _ = try resolve(reference, for: call) }
    try hub.subscribe(watcher, to: parameters.references, of: call.rights.visibleDevices)
    guard parameters.references == nil else { return }
    call.adaptToRights = { [weak call, hub] rights in
      guard let before = call?.rights else { return false }
      if rights.visibleDevices == before.visibleDevices { return true }
      guard hub.states.allSatisfy({ !before.canSee($0.device.name) || rights.canSee($0.device.name) }) else { return false }
      hub.resubscribe(watcher, to: rights.visibleDevices)
      return true
    }
  }

  func scan(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Scan.Parameters.self)
    guard call.request.more else { throw ContractError.expectedMore }
    guard [nil, "ble", "serial"].contains(parameters.transport) else { throw ContractError.invalidParameter(parameter: "transport") }
    let seconds = parameters.seconds ?? 3600
    guard (1...3600).contains(seconds) else { throw ContractError.invalidParameter(parameter: "seconds") }
    call.isStream = true
    DeviceScan.begin(call, transport: parameters.transport, seconds: seconds, blueZ: blueZ, kinds: registry)
  }

  func diagnose(_ call: Call) throws {
    _ = try call.request.parameters(as: NoParameters.self)
    let doctor = Doctor(hub, blueZ, nameService, directory: directory) { [weak call] in call?.reply(Contract.Diagnose.Result(findings: $0))
    }
    call.cancel = { doctor.cancel() }
    doctor.begin()
  }

  func record(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Record.Parameters.self)
    guard call.request.more else { throw ContractError.expectedMore }
    let device = try state(of: parameters.device, for: call).device
    call.isStream = true
    let start = device.monitor.start
    call.continue(Contract.Record.Result(line: Recording.text(device.recordingHeader(from: start))))
    // A recording with gaps cannot be replayed, so a client that falls behind gets an error instead.
    let subscription = device.monitor.add(from: start) { [weak call] line in
      guard let call else { return }
      if call.hasRoom {
        call.continue(Contract.Record.Result(line: line))
      } else {
        call.cancel?()
        call.fail(.deviceError(device: parameters.device, code: .tooSlow, message: "recording ended: the client reads too slowly"))
      }
    } ended: { [weak call] in
      call?.fail(
        .deviceError(device: parameters.device, code: .removed, message: "recording ended: device reconfigured or removed; record again"))
    }
    call.cancel = { device.monitor.remove(subscription) }
  }
}
