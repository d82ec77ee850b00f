// naga includes it in every text, and uses nothing of it.
#pragma once
