// The supported kinds of device. To add a kind, add a folder to Protocols and an entry here.

import Protocols

let registry: [Kind] = [.obd, .can, .longboard, .rcCar, .mirror, .health, .heartRate, .footPod, .position, .weather, .toy]
